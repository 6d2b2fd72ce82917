"""The jobs that several figures share: a kernel's families and search, and scores of given texts."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any

import swizzle_sim.language
import swizzle_sim.search.strategies
import swizzle_sim.search.templates
from swizzle_benchmarks.validation.sources import kernel_modules
from swizzle_sim.workload.kernels import Kernel

from .jobs import Job
from .settings import GPU, SECONDS, Settings
from .work import find, score_texts


def _modules(*packages) -> tuple[str, ...]:
    """Names of all modules in packages."""
    walked = (pkgutil.walk_packages(package.__path__, f"{package.__name__}.") for package in packages)
    return tuple(sorted(module.name for found in walked for module in found))


SCORES = ("swizzle_sim.pricing.replaying", "swizzle_sim.pricing.scoring", *_modules(swizzle_sim.language))
SEARCHES = (
    *("swizzle_sim.search.candidates", "swizzle_sim.search.judge", "swizzle_sim.search.loop", *SCORES),
    *_modules(swizzle_sim.search.strategies, swizzle_sim.search.templates),
)


def arms_job(settings: Settings, name: str) -> Job:
    """Families and search of one kernel of the registry."""
    about = {**_kernel(settings.kernel(name)), "evaluations": settings.evaluations}
    code, seconds = (*SEARCHES, *kernel_modules(name)), SECONDS.get(name, 30.0)
    return Job(name=arms_name(name), work=find, about=about, code=code, seconds=seconds)


def arms_name(kernel: str) -> str:
    """Name of the job of `arms_job`."""
    return f"search of {kernel}"


def texts_job(name: str, work: Kernel, texts: Mapping[str, str]) -> Job:
    """Scores of texts, by label, on a kernel of the registry."""
    about = {**_kernel(work), "texts": dict(texts)}
    return Job(name=name, work=score_texts, about=about, code=(*SCORES, *kernel_modules(work.name)), seconds=10.0)


def _kernel(work: Kernel) -> dict[str, Any]:
    return {"kernel": work.name, "problem": dict(work.problem), "gpu": GPU}
