"""Instances of kernels drawn by a seed, each compared with the original.

``python -m swizzle_benchmarks.evidence.search.instances --processes 16`` in the checkout; 1,000 of them by default, the
same for any number of processes. Needs Triton and no GPU. With ``--sources FOLDER`` kernels that others published are
drawn instead, from packages that are fetched into that folder.

An instance is a kernel with other constants and an order, as ``--tune -o`` writes it. Both are interpreted at one small
size, drawn from those at which a written instance is compared. An instance that a rewrite refuses is drawn anew, and
counted; so is one that the search rules out by its capture, as it reads past a tensor or stores something else.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from swizzle_benchmarks.evidence.kernels_tried.sources import HERE, SOURCES, sources_beside
from swizzle_sim.capture.process import shared_worker
from swizzle_sim.capture.user_kernel import load
from swizzle_sim.capture.workload import workload
from swizzle_sim.search.ranking import OBJECTIVES
from swizzle_sim.tuning.compare import Pair, compare_launches, small_pairs
from swizzle_sim.tuning.levers import Levers
from swizzle_sim.tuning.template import Template, Values
from swizzle_sim.tuning.written import instance_text
from swizzle_sim.workload.kernels import is_user_kernel, kernel
from xcd_model import gpu
from xcd_model.errors import RewriteError, SwizzleSimError

KERNELS = (
    *("gemm M=384 N=384 K=128 BLOCK_M=64 BLOCK_N=64 BLOCK_K=32", "batched_gemm BATCH=3 M=256 N=256 K=128"),
    *("attention B=1 H=2 S=512 D=32 BLOCK_M=64 BLOCK_N=32", "attention_gqa B=1 H=4 HKV=2 S=512 D=32 CAUSAL=1"),
    *("transpose M=512 N=512", "stencil_2d M=512 N=512", "conv_2d N=1 H=14 W=14 C=64 K=64"),
    *("tests/capture/kernels/tuned.py", "tests/capture/kernels/matmul.py", "tests/tuning/numbers.py"),
)
PUBLISHED = (  # in `swizzle_benchmarks.evidence.kernels_tried.declarations`
    "packages:a8w8 M=256 N=256 K=128 BLOCK_M=64 BLOCK_N=64 BLOCK_K=32",
    "packages:kmeans BATCHES=2 POINTS=512 CENTROIDS=256 BLOCK_N=64 BLOCK_K=32",
    "packages:grouped_mm GROUPS=3 M=256 N=256 K=128 BLOCK_M=64 BLOCK_N=64 BLOCK_K=32",
    "packages:jagged_bmm M=1024 N=256 K=128 LONGEST=256 BLOCK_M=64 BLOCK_N=64 BLOCK_K=32",
    "packages:flash TOKENS=512 BLOCK_M=64 BLOCK_N=32",
    *("packages:pairwise N=512 D=128", "packages:gemm_fp8 M=256 N=256 K=256", "packages:sinkhorn N=512 M=256"),
    *("packages:gptq M=128 N=256 K=256", "packages:int4 M=128 N=256 K=256", "packages:mhc M=256 K=512"),
    *("packages:int8_matmul M=256 N=256 K=128", "packages:awq_dequant COLUMNS=128 ROWS=512"),
    *("more:addmm M=256 N=256 K=128", "more:general_mm M=256 N=256 K=128", "more:bmm BATCH=3 M=256 N=256 K=128"),
    *("more:baddbmm BATCH=3 M=256 N=256 K=128", "more:mlstm BATCH=1 CONTEXT=512", "again:mv N=512 M=512"),
    *("others:int8_mm M=256 N=256 K=128", "others:fp8_mm M=256 N=256 K=256", "others:conv2d IMAGES=2 SIDE=14"),
    *("others:chunk_o BATCH=1 CONTEXT=256 HEADS=4", "others:chunk_h BATCH=1 CONTEXT=256 HEADS=4"),
    "served:bmm B=3 M=256 N=256 K=128 BLOCK_M=64 BLOCK_N=64 BLOCK_K=32",
    "served:prefill TOKENS=512 BLOCK_M=64 BLOCK_N=32",
    "served:batched_moe TOKENS=128 N=128 K=128 BLOCK_M=32 BLOCK_N=32 BLOCK_K=32",
)
ORDERS = (
    *("identity", "contiguous", "column", "snake", "morton", "hilbert", "reverse", "group_m(size=2)"),
    *("group_m(size=3)", "group_n(size=2)", "contiguous+group_m(size=2)", "contiguous+group_n(size=3)"),
    *("contiguous+column", "chunked(chunk=2)", "contiguous+hilbert", "contiguous+reverse"),
)
AT_ONCE = 10  # instances interpreted in one process
SHARE = 25  # instances of one process at a time
MOST_ITEMS = 128  # of a block: the interpreter works item by item


def drawn(levers: Levers, draw: random.Random, folder: Path, refused: Counter[str]) -> Iterator[tuple[Values, Pair]]:
    """Instances of one kernel without end, each by its constants and as the launches to compare."""
    template = levers.template
    base = template.base
    original = workload(base.file or base.name, base.problem)
    number = 0
    while True:
        values = dict(template.start)
        for name in template.constants:
            values[name] = draw.choice([one for one in template.ranges[name] if one <= MOST_ITEMS])
        order = draw.choice(ORDERS)
        words = f"{base.name}: {template.text(values)}, {order}"
        try:
            text, _ = instance_text(levers, values, order, [])
            pairs = list(small_pairs(original, template.workload(values)))
            what, even, one, other = draw.choice(pairs)
        except (SwizzleSimError, IndexError) as error:
            refused[f"{base.name}: {getattr(error, 'code', 'sizes')}"] += 1
            continue
        number += 1
        path = folder / str(number) / base.launch.path.name
        path.parent.mkdir()
        path.write_bytes(text)
        constants = dict(other.constexprs)
        yield values, (f"{words} at {what}", even, one, replace(other, text_from=path, constexprs=constants))


def compared(name: str, count: int, seed: int, share: int = 0) -> tuple[int, int, list[str], Counter[str]]:
    """Instances of a kernel that computed the same, of these those equal bit for bit, those that did not; refusals."""
    word, *sizes = name.split()
    problem = {one.partition("=")[0]: int(one.partition("=")[2]) for one in sizes}
    device = gpu("mi300x")
    base = load(word, problem) if is_user_kernel(word) else kernel(word, **problem)
    levers = Levers(Template(base, device), OBJECTIVES["time"], "lockstep")
    same, exact, wrong, refused = 0, 0, list[str](), Counter[str]()
    with shared_worker(), tempfile.TemporaryDirectory() as folder:
        found = drawn(levers, random.Random(f"{seed} {name}" + f" {share}" * (share > 0)), Path(folder), refused)
        while same + len(wrong) < count:
            batch = [next(found) for _ in range(min(AT_ONCE, count - same - len(wrong)))]
            done = _compared(levers.template, batch, Path(folder), seed, wrong, refused)
            same, exact = same + done[0], exact + done[1]
    return same, exact, wrong, refused


def _compared(
    template: Template,
    drawn: list[tuple[Values, Pair]],
    folder: Path,
    seed: int,
    wrong: list[str],
    refused: Counter[str],
) -> tuple[int, int]:
    """Compare at once; where one of them differs, each by itself."""
    try:
        found = compare_launches(template.base.launch.path, [pair for _, pair in drawn], folder, seed)
        refused["ragged, where constants divide no size"] += len(found.not_at)
        return len(found.cases), found.exact
    except RewriteError as error:
        if len(drawn) == 1:
            values, (_, even, *_) = drawn[0]
            if even and template.kernel(values) is None:
                refused[f"{template.base.name}: ruled out, {template.instance(values).pruned}"] += 1
            elif even:
                wrong.append(f"{drawn[0][1][0]}: {error}")
            else:
                refused["ragged, where constants divide no size, or the original does not run"] += 1
            return 0, 0
    each = [_compared(template, [one], folder, seed, wrong, refused) for one in drawn]
    return sum(one[0] for one in each), sum(one[1] for one in each)


def published(root: Path) -> list[str]:
    """Published kernels, their packages fetched into a folder and on the path of the processes that run them."""
    root.mkdir(parents=True, exist_ok=True)
    for name in PUBLISHED:
        for source in sources_beside(name.partition(" ")[0]):
            source.fetch(root)
    paths = [str((one.place(root) / one.folder).resolve()) for one in SOURCES.values() if not one.variable]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    return [str(HERE / "declarations" / name.replace(":", ".py:", 1)) for name in PUBLISHED]


def main(words: list[str]) -> int:
    """Draw instances of every kernel, and print what was found; 1 where one computes otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000, help="instances in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--sources", type=Path, help="draw published kernels, whose packages are put here")
    parser.add_argument("kernels", nargs="*", default=[])
    from joblib import Parallel, delayed  # takes a third of a second to load

    given = parser.parse_args(words)
    given.kernels = given.kernels or (published(given.sources) if given.sources else list(KERNELS))
    many = len(given.kernels)
    of = [given.count // many + (place < given.count % many) for place in range(many)]
    shares = [  # the first of every kernel before the second of any: an interrupted run has seen all of them
        (name, min(SHARE, count - SHARE * share), given.seed, share)
        for share in range(-(-max(of) // SHARE))
        for name, count in zip(given.kernels, of, strict=True)
        if count > SHARE * share
    ]
    total, wrong, refused = Counter[str](), list[str](), Counter[str]()
    done = Parallel(given.processes, return_as="generator_unordered")(delayed(compared)(*one) for one in shares)
    for same, exact, differ, left in done:
        total += Counter({"equal": same, "bit for bit": exact})
        wrong, refused = wrong + differ, refused + left
        said = (f"{total['equal']} equal, {total['bit for bit']} of them bit for bit, {len(wrong)} wrong", *differ)
        print(*said, sep="\n", flush=True)
    print(json.dumps({**total, "wrong": wrong, "drawn anew": dict(refused)}, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
