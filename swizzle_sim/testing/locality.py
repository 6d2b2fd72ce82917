"""L2 hit rates of the kernels that a repository declares, as launched, and what they lost since another revision."""

from __future__ import annotations

import ast
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swizzle_sim.base.release import version
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.testing.files import is_there
from swizzle_sim.testing.folders import files_under
from swizzle_sim.testing.revision import Revision
from swizzle_sim.testing.run import CheckResult
from swizzle_sim.triton_source.aliases import top_level
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import LanguageError, RunError, SwizzleSimError
from xcd_model.files import read_bytes, read_text

_MODULE = b"swizzle_sim.capture"
LOST = "hit-rate"


@dataclass(frozen=True)
class Declared:
    """A ``Kernel(...)`` at the top level of a file."""

    file: Path
    name: str  # name that it is assigned to
    line: int

    @property
    def key(self) -> str:
        """``my_kernel.py:NAME``, as commands take it."""
        return f"{self.file.as_posix()}:{self.name}"


@dataclass(frozen=True)
class Rate:
    """L2 hit rate of a declared kernel, as launched; or why there is none."""

    problem: dict[str, int]
    l2_hit_rate: float | None  # 0 to 1, simulated
    error: str = ""  # why there is no rate


Before = Callable[[Declared, Rate], Rate | None]


@dataclass(frozen=True)
class How:
    """GPU and replay of the rates."""

    gpu: Gpu
    replay: str = "lockstep"

    @property
    def about(self) -> dict[str, str]:
        """What rates must have in common to be compared."""
        return {"gpu": self.gpu.name, "replay": self.replay, "version": version()}


def declared_in(paths: Sequence[Path], exclude: Sequence[str] = ()) -> list[Declared]:
    """Return the kernels that files declare; the files are parsed, not run."""
    missing = [path for path in paths if not is_there(path)]
    if missing:
        raise LanguageError("no such file or folder", filename=str(missing[0]), code="file")
    found: list[Declared] = []
    for path in files_under(paths, exclude=exclude):
        if path.suffix != ".py":
            continue
        try:
            text = read_bytes(path)
            tree = ast.parse(text) if _MODULE in text else ast.Module([], [])
        except OSError as error:
            raise LanguageError(f"cannot be read ({error.strerror})", filename=str(path), code="file") from None
        except (SyntaxError, ValueError, RecursionError) as error:
            raise LanguageError(f"no Python: {error}", filename=str(path), code="syntax") from None
        found += _declared(path, tree)
    return found


def declared_at(there: Revision, paths: Sequence[Path], exclude: Sequence[str] = ()) -> dict[str, Declared]:
    """Return the kernels that another revision declares, by their key in this one."""
    found: dict[str, Declared] = {}
    for path in paths:
        base = there.at(path)
        for one in declared_in([base], exclude) if base.exists() else ():
            here = Declared(path / one.file.relative_to(base), one.name, one.line)
            found[here.key] = one
    return found


def _declared(path: Path, tree: ast.Module) -> Iterator[Declared]:
    names = set()  # what the file calls swizzle_sim.capture.Kernel
    for stmt in top_level(tree.body):
        match stmt:
            case ast.ImportFrom(module="swizzle_sim.capture", names=imported):
                names |= {one.asname or one.name for one in imported if one.name == "Kernel"}
            case ast.Assign([ast.Name(name)], ast.Call(func)) | ast.AnnAssign(ast.Name(name), _, ast.Call(func)):
                if ast.unparse(func) in {*names, "swizzle_sim.capture.Kernel"}:
                    yield Declared(path, name, stmt.lineno)


def rate_of(kernel: Declared, how: How) -> Rate:
    """Capture a kernel and replay it as launched; a kernel that cannot be has no rate, and says why."""
    from swizzle_sim.capture.user_kernel import load  # noqa: PLC0415 - needs Triton

    try:
        return _rate(load(kernel.key, {}, how.gpu.arch), how)
    except SwizzleSimError as error:
        return Rate({}, None, str(error))


def rate_at(kernel: Declared, there: Revision, how: How, sizes: dict[str, int]) -> Rate:
    """Rate of a kernel of another revision at some sizes; none where it imports files of the working tree."""
    from swizzle_sim.capture.user_kernel import capture_file, kernel_of, request_of  # noqa: PLC0415 - needs Triton

    try:
        request = request_of(kernel.key, sizes)
        trace, manifest = capture_file(request)  # not stored: its folder goes
        ours = [file for file in manifest["dependencies"] if there.is_of_checkout(Path(file))]
        if ours:
            raise RunError(
                f"it imports {ours[0]} of the working tree; store rates there with --out, and compare with the file"
            )
        return _rate(kernel_of(trace, manifest, how.gpu.arch, request), how)
    except SwizzleSimError as error:
        return Rate({}, None, str(error))


def _rate(found: Kernel, how: How) -> Rate:
    return Rate(dict(found.problem), Scorer(found, how.gpu, replay=how.replay).baseline.l2_hit_rate)


def compare(
    kernels: Sequence[Declared],
    how: How,
    before: Before,
    named: str,
    tolerance_points: float,
) -> Iterator[tuple[CheckResult, dict[str, Any]]]:
    """Yield a result for each kernel, and its rates for JSON."""
    for kernel in kernels:
        begin = time.perf_counter()
        now = rate_of(kernel, how)
        was = before(kernel, now) if named and now.l2_hit_rate is not None else None
        status, said = _judged(now, was, named, tolerance_points)
        seconds, code = time.perf_counter() - begin, LOST if status == "failed" else ""
        sizes = " ".join(f"{name}={value}" for name, value in now.problem.items())
        said = f"{kernel.key}: {said}" + (f" ({sizes})" if sizes else "")
        rates = {"kernel": kernel.key, "problem": now.problem, "l2_hit_rate": now.l2_hit_rate}
        rates["before"] = was.l2_hit_rate if was else None
        yield CheckResult(str(kernel.file), kernel.key, status, said, seconds, kernel.line, code), rates


def _judged(now: Rate, was: Rate | None, named: str, tolerance_points: float) -> tuple[str, str]:
    """Status and message of a kernel, by its rates in both revisions."""
    if now.l2_hit_rate is None:
        return "error", now.error
    said = f"L2 hit rate {100 * now.l2_hit_rate:.2f} %"
    if not named or was is None:
        return "passed", f"{said}, and not declared at {named}" if named else said
    if was.l2_hit_rate is None or was.problem != now.problem:
        return "skipped", f"{said}, and no rate of these sizes at {named}{': ' if was.error else ''}{was.error}"
    lost = 100 * (was.l2_hit_rate - now.l2_hit_rate)
    both = f"{said}, {100 * was.l2_hit_rate:.2f} % at {named}"
    if lost > tolerance_points:
        return "failed", f"{both}: {lost:.2f} points lost, of which {tolerance_points:g} are allowed"
    return "passed", both


def gone(known: Sequence[str], kernels: Sequence[Declared], named: str) -> Iterator[CheckResult]:
    """Yield a skipped result for each kernel of the other revision that is no longer declared."""
    here = {kernel.key for kernel in kernels}
    for key in known:
        if key not in here:
            file, _, _ = key.rpartition(":")
            yield CheckResult(file, key, "skipped", f"{key}: declared at {named}, and no longer")


def stored(rates: Sequence[dict[str, Any]], how: How) -> bytes:
    """Return the rates as a file to compare with later."""
    kernels = {one["kernel"]: {key: one[key] for key in ("problem", "l2_hit_rate")} for one in rates}
    return json.dumps({"format": 1, **how.about, "kernels": kernels}, indent=2).encode() + b"\n"


def read_stored(path: Path, how: How) -> dict[str, Rate]:
    """Rates of such a file, by kernel."""
    try:
        document = json.loads(read_text(path))
        kernels = {
            str(key): Rate({str(n): int(v) for n, v in one["problem"].items()}, float(one["l2_hit_rate"]))
            for key, one in document["kernels"].items()
            if one["l2_hit_rate"] is not None
        }
        about = {key: document[key] for key in how.about}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{path}: no file of hit rates that can be read ({type(error).__name__}: {error})") from None
    for key, value in how.about.items():
        if about[key] != value:
            raise RunError(f"{path}: its {key} is {about[key]}, and here it is {value}: store the rates anew")
    return kernels
