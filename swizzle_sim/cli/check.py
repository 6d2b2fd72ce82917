"""``check``: is a swizzle a bijection; at one grid and a lattice of others, or, for files, on every small grid."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.base.text import one_line, visible
from swizzle_sim.cli.arguments import (
    SWIZZLE_WORDS,
    Json,
    argument,
    grouped,
    known_families,
    known_gpus,
    known_kernels,
    option,
)
from swizzle_sim.testing.codes import RULES

if TYPE_CHECKING:
    from swizzle_sim.testing.run import CheckResult

FILES = "Files and folders"
_FIRST = "A family; a text such as 'pid = pid'; a text, Python or Triton file, file.py::function, folder; - stdin."
First = Annotated[str, argument(SWIZZLE_WORDS, _FIRST, known_families)]
_MORE = "More of them; sizes, such as M=4096 N=4096."
More = Annotated[list[str] | None, argument(f"{SWIZZLE_WORDS}|NAME=SIZE", _MORE)]
_KERNEL = "Take grid and size names from this kernel instead."
_GPU = "GPU by name, or a TOML file: its XCDs. mi300x with --grid or --kernel."


def _of_files(*names: str, help: str, **more: Any) -> Any:
    return option(*names, help=help, panel=FILES, **more)


_WHERE = "Where files must be bijective, such as 'num_pids % 8 == 0'."
Where = Annotated[str, _of_files("--where", metavar="CONDITION", help=_WHERE)]
_LAUNCH = "Launch grid of files in their sizes: 'cdiv(M, 64)'."
Answer = Annotated[str, _of_files("--answer", metavar="NAMES", help="Names that hold the tile in a Triton file.")]
_CALL = "Call marked Python functions, each in a process of its own, in place of reading them: runs their files."
Call = Annotated[bool, _of_files("--call", help=_CALL)]
Sarif = Annotated[Path | None, _of_files("--sarif", metavar="FILE", help="Write SARIF 2.1.0 there.")]
_CERTIFICATE = "Write the proofs there: python -m swizzle_sim.proof.checker FILE checks them, with code of its own."
Certificate = Annotated[Path | None, option("--certificate", metavar="FILE", help=_CERTIFICATE)]
_ALLOW = "Exit 0 though functions are skipped, or nothing is found."
_BASELINE = "Known findings, which pass; an entry that is gone is named."
_WRITE = "Write all that is found there, for --baseline; exit 0."
Statistics = Annotated[bool, _of_files("--statistics", help="Count the findings of each code, and list none.")]
_EXCLUDE = "Of folders, leave this out, in the words of .gitignore."


@dataclass(frozen=True)
class Given:
    """What to check and where, as typed."""

    swizzle: First
    more: More = None
    grid: Annotated[str | None, option("--grid", help="Launch grid, such as 4096, 64x64 or 8x16x4.")] = None
    kernel: Annotated[str | None, option("--kernel", help=_KERNEL, offers=known_kernels)] = None
    gpu: Annotated[str | None, option("--gpu", help=_GPU, offers=known_gpus)] = None
    xcds: Annotated[int | None, option("--xcds", min=1, max=4096, help="XCDs, in place of the GPU's.")] = None
    where: Where = ""
    launch: Annotated[str, _of_files("--launch", metavar="EXPRESSION", help=_LAUNCH)] = ""
    answer: Answer = ""
    call: Call = False

    @property
    def words(self) -> list[str]:
        """Files, families and sizes."""
        return [self.swizzle, *(self.more or ())]

    @property
    def targets(self) -> list[str]:
        """Words that name something to check: an equals sign outside brackets is a size's, or a text's on a pid."""
        from swizzle_sim.testing.files import is_there

        return [word for word in self.words if "=" not in word.partition("(")[0] or is_typed(word) or is_there(word)]

    @property
    def sizes(self) -> list[str]:
        """Words that give a size."""
        targets = self.targets
        return [word for word in self.words if word not in targets]

    @property
    def at_one_grid(self) -> bool:
        """Whether to check at one grid and say where else; otherwise files are tried on every small one."""
        from swizzle_sim.testing.files import TEXTS, is_there

        if self.kernel is not None or any(map(is_typed, self.targets)):
            return True
        files = [target.partition("::")[0] for target in self.targets]
        if any(file.endswith(".py") for file in files) or self.where or self.launch or self.answer:
            return False
        # a family, a text or stdin needs a grid, and is refused without one
        return self.grid is not None or not all(
            is_there(file) or Path(file).suffix in TEXTS or "/" in file for file in files
        )


def is_typed(word: str) -> bool:
    """Whether a word is a text of the language: it assigns, and names a pid; ``N=num_pids`` gives a name its value."""
    from swizzle_sim.language import is_text
    from swizzle_sim.testing.files import is_there

    return is_text(word) and "pid" in word and not re.match(r"(?!pid|[xyz]=)\w+=num_\w+$", word) and not is_there(word)


@dataclass(frozen=True)
class Folders:
    """What of folders to check, how many files at once, and whether all has to be checked."""

    exclude: Annotated[list[str] | None, _of_files("--exclude", metavar="PATTERN", help=_EXCLUDE)] = None
    jobs: Annotated[int, _of_files("--jobs", min=0, max=256, help="Processes; 0: one a core if files are many.")] = 0
    allow_skips: Annotated[bool, _of_files("--allow-skips", help=_ALLOW)] = False
    baseline: Annotated[Path | None, _of_files("--baseline", metavar="FILE", help=_BASELINE)] = None
    write_baseline: Annotated[Path | None, _of_files("--write-baseline", metavar="FILE", help=_WRITE)] = None
    statistics: Statistics = False

    def compared(self, results: list[CheckResult], given: Given) -> list[CheckResult]:
        """Results with those that are known marked; a new baseline has all."""
        from swizzle_sim.testing import formats

        if self.write_baseline:
            formats.write("--write-baseline", self.write_baseline, formats.baseline_of(results, self.write_baseline))
        path = self.write_baseline or self.baseline
        if not path:
            return results
        places = [Path(target) for target in given.targets if "::" not in target]
        marked, stale = formats.against(results, path, places)
        for gone in stale:
            print(f"swizzle-sim: {path}: {visible(gone)} is found no more: remove the line", file=sys.stderr)
        return marked


@grouped
def check(
    given: Given,
    folders: Folders = Folders(),
    certificate: Certificate = None,
    junit: Annotated[Path | None, _of_files("--junit", metavar="FILE", help="Write JUnit XML there.")] = None,
    sarif: Sarif = None,
    json: Json = False,
) -> None:
    """Check that swizzles are bijections; exit 1 if one is not, 2 if one is not checked or there is none.

    With --grid or --kernel: there, and on a lattice of other grids. Files and folders without: on every small grid, or
    as their # swizzle-check comments say. Functions are read: nothing of a file is imported or run without --call.
    """
    from swizzle_sim.testing import formats
    from swizzle_sim.testing.run import exit_status
    from xcd_model.errors import SizeError

    if not any(given.targets):
        raise SizeError(f"nothing to check in {' '.join(given.words)}: name a file or a family first")
    if given.at_one_grid and (folders.baseline or folders.write_baseline or folders.statistics):
        raise SizeError("--baseline, --write-baseline and --statistics are for files on all grids: leave --grid out")
    results = _with_certificates(given, folders, certificate, json) if certificate else _results(given, folders, json)
    for name, path, form in (("--junit", junit, formats.junit), ("--sarif", sarif, formats.sarif)):
        if path:
            formats.write(name, path, form(results))
    print_annotations(results, json=json)
    # a hook hands over the files of a commit, in which there may be nothing
    only_files = folders.baseline is not None and not any(Path(one).is_dir() for one in given.targets)
    status = exit_status(results, allow_skips=folders.allow_skips, allow_none=only_files)
    if status == 2:
        print_advice(results)
    if status:
        raise typer.Exit(status)


def _results(given: Given, folders: Folders, json: bool) -> list[CheckResult]:
    return _at_one_grid(given, json) if given.at_one_grid else _on_all_grids(given, folders, json)


def _with_certificates(given: Given, folders: Folders, path: Path, json: bool) -> list[CheckResult]:
    """Results of one process, and the proofs that were found meanwhile."""
    from json import dumps

    from swizzle_sim.proof import certificates
    from swizzle_sim.testing import formats

    with certificates() as found:
        results = _results(given, replace(folders, jobs=1), json)
    formats.write("--certificate", path, dumps({"certificates": found}).encode())
    return results


def _at_one_grid(given: Given, json: bool) -> list[CheckResult]:
    from swizzle_sim.cli.arguments import load_kernel, load_swizzle, parse_sizes
    from swizzle_sim.cli.output import print_json, print_verdict
    from swizzle_sim.language import Grid, verify
    from swizzle_sim.language.lattice import claim_of
    from swizzle_sim.testing.run import CheckResult
    from swizzle_sim.testing.settle import settle_verdict
    from xcd_model import gpu as load_gpu
    from xcd_model.errors import SizeError

    if (given.grid is None) == (given.kernel is None):
        raise SizeError("say where to check: either --grid 4096 (or 64x64, 8x16x4) or --kernel gemm M=4096")
    candidates = [load_swizzle(target) for target in given.targets]
    device = load_gpu(given.gpu or "mi300x")
    num_xcds = given.xcds or device.xcds
    workload = load_kernel(given.kernel, given.sizes, device.arch) if given.kernel is not None else None
    where = workload.grid if workload else Grid.parse(given.grid or "")
    names = dict(workload.problem) if workload else parse_sizes(given.sizes)
    others = list(workload.at_grids()) if workload else None
    documents, results = [], []
    for target, candidate in zip(given.targets, candidates, strict=True):
        begin = time.perf_counter()
        verdict = verify(candidate, where, num_xcds, sizes=names or None, lattice=others, sample=True)
        verdict = settle_verdict(verdict, candidate, where, num_xcds)
        document: dict[str, Any] = {"swizzle": candidate.name, "source": candidate.source}
        document |= {"grid": list(where.launch), "num_xcds": num_xcds, "problem": names, "verdict": verdict}
        documents.append(document)
        if not json:
            print_verdict(candidate, where, num_xcds, verdict)
        wrong = verdict.counterexample
        status, said, code = (
            ("failed", wrong.message, wrong.code) if wrong else ("passed", claim_of(verdict, where), "")
        )
        name, seconds = candidate.name or target, time.perf_counter() - begin
        results.append(CheckResult(target, name, status, said, seconds, 0, code, verdict.status))
    if json:
        print_json(documents[0] if len(documents) == 1 else {"results": documents})
    return results


def _on_all_grids(given: Given, folders: Folders, json: bool) -> list[CheckResult]:
    from swizzle_sim.base.progress import Progress
    from swizzle_sim.cli.output import print_json
    from swizzle_sim.testing.directive import options_of_words
    from swizzle_sim.testing.folders import files_under
    from swizzle_sim.testing.run import check_files
    from xcd_model import gpu as load_gpu

    xcds = given.xcds or (load_gpu(given.gpu).xcds if given.gpu else None)
    over = options_of_words(
        given.sizes, grids=given.grid, xcds=xcds, where=given.where, launch=given.launch, answer=given.answer
    )
    files = []
    for target in given.targets:
        path, _, function = target.partition("::")
        found = files_under([Path(path)], exclude=folders.exclude or ())
        files += [(file, function) for file in found]
    results: list[CheckResult] = []
    with Progress("checking", "files") as progress:
        for k, of_file in enumerate(check_files(files, over, jobs=folders.jobs, call=given.call), 1):
            results += of_file
            if len(files) > 1:
                progress(k, len(files))
    results = folders.compared(results, given)
    if json:
        print_json(document(results))
    else:
        print_results(results, statistics=folders.statistics)
    return results


_MEANINGS = {rule.code: rule.meaning for rule in RULES}
_WORDS = {"passed": "ok", "failed": "FAILED", "error": "error", "skipped": "skipped"}
NOTHING = (
    "nothing to check: no function looks like a remap; name one, as FILE.py::FUNCTION, with --answer for the names "
    "that hold its tile, write '# swizzle-check' above one that takes the id and returns the tile, name another "
    "folder, or pass --allow-skips"
)
_SKIPPED = (
    "{n} not checked, which is no pass: write the comment that is shown above the function, '# swizzle: off' "
    "above what is no remap, keep what is known with --write-baseline FILE, or pass --allow-skips"
)


def print_results(results: Sequence[CheckResult], *, statistics: bool = False) -> None:
    """Print a line for each result, errors on stderr, or one for each code, and how many of each kind there are."""
    from swizzle_sim.cli.output import line

    shown = [one for one in results if not one.is_known]
    if statistics:
        for rule, count in Counter(one.rule for one in shown if one.rule).most_common():
            print(f"{count:6}  {rule}  {_MEANINGS[rule]}")
    for one in [] if statistics else shown:
        if one.status == "error":
            print(f"swizzle-sim: {_shown(one)} [{one.rule}]", file=sys.stderr)
        else:
            word = f"{_WORDS[one.status]} {one.rule}".rstrip()
            place = one_line(one.file) + (f":{one.line}" if one.line else "")
            line(f"{place}: {word}: {_shown(one)}")
    if len(results) > 1:
        counts = counted(results)
        words = _WORDS | {"known": "in the baseline"}
        told = ", ".join(f"{counts[key]} {word}" for key, word in words.items() if counts[key])
        print(f"{len(results)} found: {told}")


def print_advice(results: Sequence[CheckResult]) -> None:
    """Say on stderr why a check without a counter-example is no pass."""
    skipped = counted(results)["skipped"]
    if skipped or not results:
        print(f"swizzle-sim: {_SKIPPED.format(n=skipped) if skipped else NOTHING}", file=sys.stderr)


def print_annotations(results: Sequence[CheckResult], *, json: bool) -> None:
    """Print GitHub's annotations where GitHub runs this: on stderr, which it reads too, if stdout is a document."""
    if os.environ.get("GITHUB_ACTIONS") == "true":
        from swizzle_sim.testing.formats import github_annotations

        for line in github_annotations(results):
            print(line, file=sys.stderr if json else sys.stdout)


def counted(results: Sequence[CheckResult]) -> dict[str, int]:
    """How many results there are of each status, and how many a baseline knows."""
    found = Counter("known" if one.is_known else one.status for one in results)
    return {status: found[status] for status in (*_WORDS, "known")}


def document(results: Sequence[CheckResult]) -> dict[str, Any]:
    """JSON of results."""
    return {"results": [asdict(one) for one in results], "counts": counted(results)}


def _shown(one: CheckResult) -> str:
    """Message without the place that stands before it; of a skipped function one line, with the comment to add."""
    said = re.sub(rf"\A{re.escape(one.file)}:(\d+):\d+: ", lambda at: _elsewhere(at[1], one), one.message)
    for raw in sorted({one.file, one.name, Path(one.file).name}, key=len, reverse=True):
        said = said.replace(raw, one_line(raw)) if raw else said
    if one.status == "skipped":
        name = "" if one.name in said else f"{one_line(one.name)}: "
        advice = f"; add: {one.advice}" if one.advice else ""
        said = f"{name}{said.partition(chr(10))[0]}{advice}"
    # what a file says is no workflow command of GitHub
    return "\n".join(re.sub(r"\A(\s*)(::|##\[)", r"\1\\\2", visible(line)) for line in said.splitlines())


def _elsewhere(line: str, one: CheckResult) -> str:
    if one.status == "error":
        return f"{one.file}:{line}: "
    return "" if int(line) == one.line else f"line {line}: "
