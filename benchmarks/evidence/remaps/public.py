"""``pages/public-remaps.md``: what `check` says of other people's folders, each by repository, version and path.

python -m swizzle_benchmarks.evidence.remaps.public FOLDER [BEFORE]

FOLDER holds ``NAME.json`` as ``check PATH --json --allow-skips`` wrote it of each folder below, / in NAME as +, or
``NAME.some.json`` of the files that held a finding before; BEFORE has those of an older tree. Nothing of anybody's code
is here: the snapshots are fetched by whoever runs it.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from .. import PAGES
from .packages import reasons


class Folder(NamedTuple):
    """A folder of somebody's repository, or of a wheel."""

    repository: str
    version: str
    path: str  # inside it; all of it where empty
    name: str  # of the file with its results


PACKAGES = (
    Folder("ROCm/aiter", "e4048607a535", "", "aiter"),
    Folder("ROCm/tritonBLAS", "95e2c4732e6a", "", "tritonBLAS"),
    Folder("ROCm/FlyDSL", "11c4174d82b7", "", "FlyDSL"),
    Folder("AMD-AGI/Primus-Turbo", "a6a16cdce46b", "", "Primus-Turbo"),
    Folder("HazyResearch/HipKittens", "f09e9685c4c6", "", "HipKittens"),
    Folder("sglang, wheel", "0.5.23", "*.py", "sglang"),
    Folder("vllm, wheel", "0.33.0", "*.py", "vllm"),
    Folder("linkedin/Liger-Kernel", "ead96b618e5c", "", "Liger-Kernel"),
    Folder("pytorch/helion", "ef091f416a50", "", "helion"),
    Folder("tile-ai/tilelang", "a35008a42531", "", "tilelang"),
    Folder("fla-org/flash-linear-attention", "bc3b101dcb71", "", "flash-linear-attention"),
)
# What holds a remap, beside vllm and Liger above; triton_kernels is in vllm's wheel.
SOURCES = (
    Folder(
        "NVIDIA/cutlass",
        "7107b05535f8",
        "include/cutlass/gemm/threadblock/threadblock_swizzle.h",
        "cutlass+include+cutlass+gemm+threadblock+threadblock_swizzle.h",
    ),
    Folder(
        "NVIDIA/cutlass",
        "7107b05535f8",
        "include/cutlass/gemm/kernel/sm90_tile_scheduler.hpp",
        "cutlass+include+cutlass+gemm+kernel+sm90_tile_scheduler.hpp",
    ),
    Folder(
        "ROCm/composable_kernel",
        "8e22e1ae31bb",
        "include/ck/tensor_operation/gpu/grid",
        "composable_kernel+include+ck+tensor_operation+gpu+grid",
    ),
    Folder("Dao-AILab/flash-attention", "0251105a2fb1", "hopper", "flash-attention+hopper"),
    Folder("Dao-AILab/flash-attention", "0251105a2fb1", "flash_attn", "flash-attention+flash_attn"),
    Folder("Dao-AILab/quack", "c8ec31700579", "quack", "quack+quack"),
    Folder(
        "HazyResearch/ThunderKittens", "0b55588d2769", "kernels/gemm/bf16_h100", "ThunderKittens+kernels+gemm+bf16_h100"
    ),
    Folder("HazyResearch/ThunderKittens", "0b55588d2769", "include/common", "ThunderKittens+include+common"),
    Folder("BobMcDear/attorch", "67c2772baf33", "", "attorch"),
    Folder("apple/ml-cross-entropy", "d42911f9b1a1", "", "ml-cross-entropy"),
    Folder("deepseek-ai/DeepGEMM", "54e226124093", "deep_gemm", "DeepGEMM+deep_gemm"),
    Folder("facebookresearch/xformers", "ca6d2aa0d432", "xformers/ops/_triton", "xformers+xformers+ops+_triton"),
    Folder("dropbox/gemlite", "fd3f9338a96b", "", "gemlite"),
    Folder("ModelTC/LightLLM", "87881ae7ca9a", "", "LightLLM"),
    Folder("pytorch/FBGEMM", "71d6f8b229d9", "", "FBGEMM"),
    Folder("meta-pytorch/tritonbench", "db2155c80775", "", "tritonbench"),
    Folder("pytorch/ao", "36027d82d1ad", "", "ao"),
    Folder("stanford-futuredata/stk", "736313768ef6", "", "stk"),
    Folder("ROCm/aotriton", "30ae96716b3e", "", "aotriton"),
    Folder("unslothai/unsloth", "015bdef0d94a", "", "unsloth"),
)
_HEAD = """\
# Remaps in other people's folders

<!-- Generated: python -m swizzle_benchmarks.evidence.remaps.public FOLDER BEFORE -->

What `swizzle-sim check PATH --allow-skips` finds in each folder as it is, with no comment added: functions that look
like a remap, and what becomes of them. *Skipped* stand with their line and construct. A row of dashes was not run with
this tree; one with a star was run on those files alone that held a finding of an earlier tree. *Before* is the tree
without finding by flow. Seconds are of the wall, on a machine with other work.

"""
_SOME = "{}.some.json"
_COLUMNS = ("proved", "tested", "refuted", "skipped", "error")


def main() -> None:
    """Write the page."""
    folders = [Path(word) for word in sys.argv[1:3]]
    path = PAGES / "public-remaps.md"
    path.write_text(page(folders[0], folders[1] if len(folders) > 1 else None), encoding="utf-8")
    print("written:", path)


def page(after: Path, before: Path | None) -> str:
    """Text of the page."""
    parts = [_HEAD]
    every: list[Mapping[str, Any]] = []
    for title, folders in (("Packages", PACKAGES), ("Sources that hold a remap", SOURCES)):
        found = {one: _results(after, one) for one in folders}
        stars = {one: one._replace(path=f"{one.path or 'all'} *") for one in folders if _is_of_some(after, one)}
        rows = [_row(stars.get(one, one), results, _results(before, one)) for one, results in found.items()]
        results = [one for part in found.values() if part is not None for one in part]
        every += results
        both = [one for one in folders if found[one] is not None and _results(before, one) is not None]
        earlier = [row for one in both for row in _results(before, one) or ()]
        rows.append(_row(Folder(f"all {title.lower()}", "", "", ""), results, earlier if both else None))
        parts += [
            f"## {title}\n\n",
            "| repository | version | path | found | proved | tested | refuted | skipped | not read ",
            "| found, skipped before |\n",
            "| --- " * 10 + "|\n",
            *rows,
            "\n",
        ]
        if folders is SOURCES:
            missed = [one.repository for one, part in found.items() if part is not None and not part]
            parts.append(f"Passed over, with nothing found: {', '.join(missed) or 'none'}.\n\n")
    seconds = [one["seconds"] for one in every if one["verdict"] and one["status"] != "skipped"]
    parts.append(f"Half of the verdicts took at most {statistics.median(seconds):.1f} s.\n\n" if seconds else "")
    return "".join([*parts, reasons(every)])


def _results(folder: Path | None, one: Folder) -> list[Mapping[str, Any]] | None:
    """Results of one folder; None where it was not run."""
    for name in (f"{one.name}.json", _SOME.format(one.name)):
        path = folder / name if folder is not None else None
        if path is not None and path.is_file() and path.stat().st_size:
            return list(json.loads(path.read_text(encoding="utf-8"))["results"])
    return None


def _is_of_some(folder: Path, one: Folder) -> bool:
    return not (folder / f"{one.name}.json").is_file() and (folder / _SOME.format(one.name)).is_file()


def _row(one: Folder, results: Iterable[Mapping[str, Any]] | None, before: list[Mapping[str, Any]] | None) -> str:
    cells = ["-"] * 6
    if results is not None:
        counts = Counter(row["verdict"] or row["status"] for row in results)
        cells = [str(sum(counts.values())), *(str(counts[key]) for key in _COLUMNS)]
    skipped = sum(row["status"] == "skipped" for row in before or ())
    was = f"{len(before)}, {skipped}" if before is not None else "-"
    return f"| {one.repository} | {one.version} | {one.path or 'all'} | {' | '.join(cells)} | {was} |\n"


if __name__ == "__main__":
    main()
