"""``python -m swizzle_benchmarks.validation``: the model against measured counters; ``--quick`` takes seconds."""

import typer

from swizzle_sim.cli.app import main

from .command import fidelity

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command("validation")(fidelity)

if __name__ == "__main__":
    main(app)
