"""``hit-rates``: L2 hit rates of the kernels that a repository declares, and what they lost since another revision."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import GpuName, Json, Replay, argument, grouped, option
from swizzle_sim.cli.check import AllowSkips, Exclude, Junit
from swizzle_sim.cli.output import print_json, say

if TYPE_CHECKING:
    from swizzle_sim.testing.locality import Before, Declared, How
    from swizzle_sim.testing.run import CheckResult

Paths = Annotated[list[str], argument("PATH", "Files that declare kernels, and folders of them.")]
Out = Annotated[Path | None, option("--out", metavar="FILE", help="Store the rates there.")]


@dataclass(frozen=True)
class Comparison:
    """What to compare with, and what passes."""

    against: Annotated[
        str, option("--against", metavar="FILE|REV", help="Rates stored by --out, or a revision of this checkout.")
    ] = ""
    tolerance: Annotated[
        float, option("--tolerance", metavar="POINTS", min=0, max=100, help="Loss that passes, in percentage points.")
    ] = 1.0
    exclude: Exclude = None
    allow_skips: AllowSkips = False


@grouped
def hit_rates(
    paths: Paths,
    comparison: Comparison = Comparison(),
    gpu: GpuName = "mi300x",
    replay: Replay = "lockstep",
    out: Out = None,
    junit: Junit = None,
    json: Json = False,
) -> None:
    """Compare the L2 hit rates of declared kernels with those of another revision; exit 1 if one lost too much.

    Kernels are captured and replayed as launched, with the remap of their own source. Exit 2 if a kernel cannot be
    captured or compared, or there is none.
    """
    from swizzle_sim.cli.check_results import document, print_annotations, print_results
    from swizzle_sim.testing import formats
    from swizzle_sim.testing.locality import How, declared_in, stored
    from swizzle_sim.testing.run import exit_status
    from xcd_model import gpu as load_gpu

    how = How(load_gpu(gpu), replay)
    kernels = declared_in([Path(path) for path in paths], comparison.exclude or ())
    results, rates = _compared(kernels, how, paths, comparison)
    if json:
        print_json({**how.about, "kind": "simulated", "rates": rates, **document(results)})
    else:
        print_results(results)
    if out:
        formats.write("--out", out, stored(rates, how))
    if junit:
        formats.write("--junit", junit, formats.junit(results))
    print_annotations(results, json=json)
    status = exit_status(results, allow_skips=comparison.allow_skips)
    if not results:
        say(
            f"swizzle-sim: no kernel is declared in {' '.join(paths)}: swizzle-sim init-kernel FILE:FUNCTION drafts one"
        )
    if status:
        raise typer.Exit(status)


def _compared(
    kernels: Sequence[Declared], how: How, paths: Sequence[str], comparison: Comparison
) -> tuple[list[CheckResult], list[dict[str, Any]]]:
    from swizzle_sim.testing.locality import compare, gone

    results, rates = [], []
    with _before(how, paths, comparison) as (known, before), Progress("replaying", "kernels") as progress:
        for k, (result, rate) in enumerate(compare(kernels, how, before, comparison.against, comparison.tolerance), 1):
            results.append(result)
            rates.append(rate)
            progress(k, len(kernels))
        results += gone(known, kernels, comparison.against)
    return results, rates


@contextlib.contextmanager
def _before(how: How, paths: Sequence[str], comparison: Comparison) -> Iterator[tuple[list[str], Before]]:
    """Kernels of what is compared with, and how to find their rates."""
    from swizzle_sim.testing.locality import declared_at, rate_at, read_stored
    from swizzle_sim.testing.revision import revision

    against = comparison.against
    if not against:
        yield [], lambda kernel, now: None
    elif Path(against).is_file():
        rates = read_stored(Path(against), how)
        yield list(rates), lambda kernel, now: rates.get(kernel.key)
    else:
        with revision(against) as there:
            known = declared_at(there, [Path(path) for path in paths], comparison.exclude or ())
            yield (
                list(known),
                lambda kernel, now: (
                    rate_at(known[kernel.key], there, how, now.problem) if kernel.key in known else None
                ),
            )
