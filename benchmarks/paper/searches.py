"""The jobs that several figures share: a kernel's families and search, and scores of given texts."""

from __future__ import annotations

import ast
import pkgutil
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import benchmarks.suite
import swizzle_sim.swizzle
import swizzle_sim.templates
import swizzle_sim.tuning
from benchmarks.paper.jobs import Job
from benchmarks.paper.settings import GPU, SECONDS, Settings
from benchmarks.paper.work import find, score_texts
from swizzle_sim.kernels import Kernel


def _modules(*packages) -> tuple[str, ...]:
    """Names of all modules in packages."""
    walked = (pkgutil.walk_packages(package.__path__, f"{package.__name__}.") for package in packages)
    return tuple(sorted(module.name for found in walked for module in found))


SCORES = ("swizzle_sim.replaying", "swizzle_sim.scoring", *_modules(swizzle_sim.swizzle))
SEARCHES = (
    *("swizzle_sim.candidates", "swizzle_sim.search", "swizzle_sim.suite.shortlist", *SCORES),
    *_modules(swizzle_sim.templates, swizzle_sim.tuning),
)


@lru_cache
def suite_files(kernel: str) -> tuple[Path, ...]:
    """Files of the suite that a kernel of it is made of."""
    folder, found, todo = Path(benchmarks.suite.__path__[0]), set(), [kernel]
    while todo:
        path = folder / f"{todo.pop()}.py"
        if path in found or not path.is_file():
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks.suite"):
                todo += [(node.module or "").rpartition(".")[2], *(alias.name for alias in node.names)]
    return tuple(sorted(found))


def arms_job(settings: Settings, name: str) -> Job:
    """Families and search of one kernel of the registry."""
    about = {**_kernel(settings.kernel(name)), "evaluations": settings.evaluations(name)}
    files, seconds = suite_files(name), SECONDS.get(name, 30.0)
    return Job(name=arms_name(name), work=find, about=about, code=SEARCHES, files=files, seconds=seconds)


def arms_name(kernel: str) -> str:
    """Name of the job of `arms_job`."""
    return f"search of {kernel}"


def texts_job(name: str, work: Kernel, texts: Mapping[str, str]) -> Job:
    """Scores of texts, by label, on a kernel of the registry."""
    about = {**_kernel(work), "texts": dict(texts)}
    return Job(name=name, work=score_texts, about=about, code=SCORES, files=suite_files(work.name), seconds=10.0)


def _kernel(work: Kernel) -> dict[str, Any]:
    return {"kernel": work.name, "problem": dict(work.problem), "gpu": GPU}
