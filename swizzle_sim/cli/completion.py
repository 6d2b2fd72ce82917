"""What the shell offers for a value: kernels, GPUs, families, run folders, and the words an option knows.

Which values a parameter takes is told by its name or metavar, so commands of other rooms and packages complete alike.
Nothing is loaded before the shell asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Offer = Callable[[], Iterable[str]]


def kernels() -> Iterable[str]:
    """Kernels of the registry."""
    from swizzle_sim.kernels import kernel_names

    return kernel_names()


def gpus() -> Iterable[str]:
    """GPUs and their partition modes."""
    from xcd_model import gpu_modes, gpu_names

    names = gpu_names()
    return [*names, *("-".join((name, *mode)).lower() for name in names for mode in gpu_modes(name) if all(mode))]


def families() -> Iterable[str]:
    """Families by name; parentheses would need quotes in most shells, and parameters have defaults."""
    from swizzle_sim.swizzle.families import FAMILIES

    return FAMILIES


def run_folders() -> Iterable[str]:
    """Run folders of ``runs/``."""
    from swizzle_sim.search import runs_in

    return [str(folder) for folder in runs_in("runs")]


def words(*known: str) -> Offer:
    """Offer of a fixed set of words."""
    return lambda: known


# By the parameter's name, or its metavar where the name says less. Files complete beside what is offered here.
BY_METAVAR: dict[str, Offer] = {
    "KERNEL": kernels,
    "RUN": run_folders,
    "RUN|DIR": run_folders,
    "RUN|KERNEL": lambda: [*run_folders(), *kernels()],
    "FILE|FAMILY": families,
    "lockstep|timed|RUN": lambda: ["lockstep", "timed", *run_folders()],
    "contexts|models|progression|sizes": words("contexts", "models", "progression", "sizes"),
}
BY_NAME: dict[str, Offer] = {
    "gpu": gpus,
    "kernel": kernels,
    "resume": run_folders,
    "replay": words("lockstep", "timed"),
    "proposer": words("families", "search", "llm", "two-stage"),
    "sampler": words("auto", "tpe", "cma-es", "random", "exhaustive"),
    "objective": words("l2_hit_rate", "time", "hbm_bytes", "energy"),
    "context": words("aware", "unaware", "overload"),
    "backend": words("processes", "serial", "dask"),
    "at": words("auto", "program", "tile"),
    "tune": words("tiles"),
}


def complete_parameters(params: Iterable[Any]) -> None:
    """Give every parameter whose values are known its completion."""
    for param in params:
        offer = BY_METAVAR.get(_first(param.metavar or "")) or BY_NAME.get(param.name or "")
        if offer is not None:
            param._custom_shell_complete = _completion(offer)


def _first(metavar: str) -> str:
    """First word of a metavar, without what says how often it comes."""
    return metavar.partition(" ")[0].removesuffix("...").strip("[]")


def _completion(offer: Offer) -> Callable[[Any, Any, str], list[str]]:
    def complete(ctx: Any, param: Any, incomplete: str) -> list[str]:
        head, plus, tail = incomplete.rpartition("+")  # families are joined by it
        return [head + plus + value for value in offer() if value.startswith(tail)]

    return complete
