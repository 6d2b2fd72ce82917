"""Text blocks of a prompt: the hardware (``aware``, ``unaware`` or ``overload``), the languages, and the kernel.

Of the kernel itself it says source, tensors, small index tables, work and sharing.

Source: the three arms of SwizzlePerf (arXiv 2508.20258, section 4): its own prompt, one without hardware and schedule,
and one with an unfiltered dump of documentation of more than 10 000 tokens.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.language import FAMILIES
from swizzle_sim.language.grid import Grid
from swizzle_sim.language.rules import BINARY_OPS, COMPARE_OPS, MAX_LOOPS, PAIR_FUNCTION, RANGES
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.pricing.sharing import middle_of, sharing, sharing_words
from swizzle_sim.search.extensions import load_own
from swizzle_sim.workload.kernels import Kernel
from swizzle_sim.workload.launch import Array
from xcd_model import Gpu, gpu, gpu_names
from xcd_model.dispatch import run_of
from xcd_model.errors import ModelError, SwizzleSimError
from xcd_model.files import read_text
from xcd_model.replay.traffic import COLUMNS
from xcd_model.spec.caches import Cache

GROUP = "swizzle_sim.contexts"  # of entry points
CONTEXTS = ("aware", "unaware", "overload")
UNAWARE = "A GPU. Nothing else is known of it."
FEW_MASKS = 4  # of a set index, up to which they are told
OVERLOAD_TOKENS = 10_000  # of the document, which is cut there: as many as the paper's
RAW_BINS = 16  # of the raw counters
# One spelling of each call: the parser takes Triton's and Python's.
CALLS = ("cdiv(a, b), which rounds up", "min", "max", "abs", "tl.where(condition, a, b)", PAIR_FUNCTION)
CHARS_PER_TOKEN = 4  # of English and figures; enough to size a document
MAX_DOCS_BYTES = 4 << 20
MOST_ITEMS = 1024  # of an index table that is shown
MOST_RUNS = 400  # of equal items
PARTITIONS = (
    "That L2 has two partitions of this size, each for half of the {unit}s, by groups of neighbours. Each partition is "
    "the point of coherence for half of the lines; where {unit}s of the other half read such a line, theirs holds a "
    "copy."
)


def hardware_text(context: str, scorer: Scorer, docs: str | None = None) -> str:
    """Hardware description for a context; of a user's own what its function makes of the scorer."""
    if docs is not None and context != "overload":
        raise ModelError(f"--docs belongs to --context overload, not to {context}", code="context-name")
    if context == "unaware":
        return UNAWARE
    if context not in CONTEXTS:
        return str(load_own(context, GROUP, CONTEXTS)(scorer))
    aware = describe(scorer)
    if context == "aware":
        return aware
    return f"{aware}\n\n{everything(scorer) if docs is None else docs[: OVERLOAD_TOKENS * CHARS_PER_TOKEN]}"


def describe(scorer: Scorer) -> str:
    """Architecture and schedule of a GPU, from its description, and how many workgroups of the kernel run at once."""
    g = scorer.gpu
    unit = "SM" if g.arch.startswith("sm_") else "CU"
    lines = _of_one(g, unit) if g.xcds == 1 else _of_many(g, bool(scorer.kernel.programs))
    if g.mall:
        lines.append(f"Infinity Cache: {g.mall.size_bytes / 2**20:g} MiB{', shared by all XCDs' * (g.xcds > 1)}.")
    lines.append(f"HBM: {g.hbm.peak_bandwidth_gbps / 1e3:g} TB/s peak, {g.hbm.bandwidth_gbps / 1e3:g} sustained.")
    return "\n".join([*lines, _resident(scorer, unit)])


def _of_many(g: Gpu, persistent: bool) -> list[str]:
    """XCDs with an L2 each."""
    return [
        f"{g.title} ({g.arch}), {g.partition}: {g.xcds} accelerator complex dies (XCDs), {g.cus_per_xcd} CUs each.",
        f"L2: one for each XCD, private to it, {_l2_text(g.l2)} A line that two XCDs read is fetched and stored twice.",
        f"Schedule: {_dealt(g, persistent)} Within an XCD, ids are served in order, each to the first CU with room.",
    ]


def _dealt(g: Gpu, persistent: bool) -> str:
    """The dispatch policy in words; of a persistent kernel the hardware starts the programs and knows no tiles."""
    runs, one = ("programs", "program") if persistent else ("workgroups", "workgroup id")
    if g.dispatch == "one_after_another":
        return f"the hardware deals out the ids in {g.xcds} equal runs, one for each XCD."
    if g.dispatch == "chunked":
        return f"the hardware deals out chunks of {run_of(g, 0)} ids to the XCDs in turn."
    at = f"(w + {g.dispatch_offset})" if g.dispatch_offset else "w"
    return (
        f"the hardware hands out {runs} one at a time, round robin: {one} w runs on XCD {at} % {g.xcds}, so "
        "neighbouring ids are on different XCDs."
    )


def _of_one(g: Gpu, unit: str) -> list[str]:
    """A GPU, or a partition of one, with one L2."""
    return [
        f"{g.title} ({g.arch}): {g.cus_per_xcd} {unit}s behind one L2; num_xcds is 1.",
        f"L2: {_l2_text(g.l2)}",
        *([PARTITIONS.format(unit=unit)] if g.l2_partitions else []),
        f"Schedule: the hardware starts workgroups in the order of their ids, each on the first {unit} with room.",
    ]


def _l2_text(l2: Cache) -> str:
    """Size of an L2, and how a line finds its set."""
    text = (
        f"{l2.size_bytes / 2**20:g} MiB, {l2.ways} ways in {l2.sets} sets of {l2.line_bytes}-byte lines. The set of a "
        f"line is its number, address // {l2.line_bytes}, modulo the sets"
    )
    rows = () if l2.index == "modulo" else l2.index_rows or ()
    if len(rows) > FEW_MASKS or (l2.index != "modulo" and not rows):
        return f"{text}, some of its bits XORed with higher ones of the address."
    if rows:
        masks = ", ".join(f"{row:#x}" for row in rows)
        text += f", but {len(rows)} of its bits are each the XOR of the address bits in one of the masks {masks}"
    few = "one set" if not rows else f"at most {2 ** len(rows)} sets"
    return f"{text}: lines that are {l2.size_bytes // l2.ways >> 10} KiB or a larger power of two apart reach {few}."


def _resident(scorer: Scorer, unit: str) -> str:
    """How many workgroups run at once, and how many wait."""
    kernel, gpu, fit = scorer.kernel, scorer.gpu, scorer.occupancy
    launched = kernel.programs or kernel.grid.num_pids
    slots = gpu.xcds * gpu.cus_per_xcd * fit
    many = f"{fit} workgroups fit" if fit > 1 else "1 workgroup fits"
    text = f"Of this kernel {many} {'an' if unit == 'SM' else 'a'} {unit} at once: "
    text += f"all {launched} run" if launched <= slots else f"{slots} of its {launched} run"
    text += " at the same time"
    if gpu.xcds > 1:
        text += f", {'at most ' * (launched <= slots)}{min(slots, -(-launched // gpu.xcds) * gpu.xcds) // gpu.xcds} "
        text += "on each XCD"
    return f"{text}." if launched <= slots else f"{text}; the others wait."


def everything(scorer: Scorer) -> str:
    """An unfiltered dump: raw counters, then facts of the catalogue's GPUs with status and source, until it is full."""
    traffic = scorer.traffic(np.arange(scorer.kernel.grid.num_pids))
    lines = [f"Raw counters of the kernel in launch order, bin by bin: {', '.join(COLUMNS)}"]
    for bin_ in range(min(RAW_BINS, traffic.timeline.shape[0])):
        rows = (f"bin {bin_} XCD {x}: {' '.join(map(str, row))}" for x, row in enumerate(traffic.timeline[bin_]))
        lines += rows
    others = (gpu(name) for name in sorted(gpu_names()) if name != scorer.gpu.name)
    return "\n\n".join(["\n".join(lines), *map(_facts, (scorer.gpu, *others))])[: OVERLOAD_TOKENS * CHARS_PER_TOKEN]


def _facts(device: Gpu) -> str:
    values = device.as_dict()
    facts = values.pop("facts")
    lines = [f"{device.title}", json.dumps(values, indent=1)]
    lines += [f"{key}: {json.dumps(fact)}" for key, fact in facts.items()]
    return "\n".join(lines)


def read_docs(path: str | Path) -> str:
    """Text of a documentation file."""
    where = Path(path)
    try:
        if where.stat().st_size > MAX_DOCS_BYTES:
            raise ModelError(
                f"{where}: {where.stat().st_size} bytes; at most {MAX_DOCS_BYTES} are passed on", code="docs"
            )
        return read_text(where)
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{where}: not a text file that can be read ({error})", code="docs") from error


TEMPLATE_CARD = """\
A template is a swizzle with parameters that a search will choose. Its head declares each parameter with its range, and
conditions that the search has to obey; the statements below read the parameters as variables:
template windowed_chunks(chunk: 1..512, window: powers 1..64) requires num_pids >= num_xcds * chunk
    block = num_xcds * chunk
    ...
Ranges: low..high, low..high step n, powers low..high (of two), {1, 2, 5}. Conditions are those of the language, over
parameters, num_pids and the like, and the kernel's sizes; write 'requires' again for another. Every parameter is read
by the statements, and none is called like a name that has a value already. The template is a bijection for every
combination that its conditions allow."""


def language_card(kernel: Kernel, *, schedule: bool = True) -> str:
    """Description of the swizzle language for one kernel, from the tables that the parser reads."""
    names = grid_names(kernel)
    if schedule:
        names["num_xcds"] = "number of XCDs of the GPU"
    lines = [
        "A swizzle is a few Python-like statements over 32-bit integers.",
        "Statements: assignment (also a, b = b, a and a, b = divmod(x, y)), += and the like, if/elif/else, "
        f"for over {RANGES[0]}(...) with a literal step, at most {MAX_LOOPS} deep, and x if c else y.",
        f"Operators: {' '.join(BINARY_OPS.values())}, unary -, {' '.join(COMPARE_OPS.values())}, and, or, not.",
        f"Calls: {', '.join(CALLS)}.",
        "A // or % of operands with opposite signs is refused, since Python and a GPU differ there; so is a value "
        "outside the signed 32-bit range.",
        f"The answer: {_answer(kernel.grid)}.",
        "Names that have a value:",
        *(f"- {name}: {meaning}" for name, meaning in names.items()),
        "Sizes of this kernel, which the text may use by name: "
        + ", ".join(f"{name} = {size}" for name, size in kernel.problem.items()),
        f"In place of statements one line may name a known order, with other numbers: {_named(kernel, schedule)}.",
    ]
    return "\n".join(lines)


def _named(kernel: Kernel, schedule: bool) -> str:
    """Families that are answers, in words."""
    placements, orders = (known_orders(kernel.grid, schedule, places=places) for places in (True, False))
    if not orders:
        return f"{', '.join(placements)}; or two of them, joined by +"
    named = f"{', '.join(placements)}, alone or with + before one of {', '.join(orders)}"
    return f"{named}; such as {placements[0]}+{orders[0]}"


def known_orders(grid: Grid, schedule: bool, *, places: bool) -> list[str]:
    """Placements, or orders that a grid has the axes for, with parameters; without a schedule what knows no XCDs."""
    axes: set[int] = {0} if places else {2} if grid.shape else {3} if len(grid.launch) == 3 else set()
    return [
        f"{name}({', '.join(f'{key}={one.default}' for key, one in found.parameters.items())})".replace("()", "")
        for name, found in FAMILIES.items()
        if found.axes in axes and name != "identity" and (schedule or "num_xcds" not in found.template)
    ]


def _answer(grid: Grid) -> str:
    """What a swizzle of a grid assigns."""
    if len(grid.axes) == 1:
        return "assign pid"
    pairs = [", ".join(grid.axes)] + ([] if grid.tiles or len(grid.launch) > 2 else ["pid_x, pid_y"])
    return f"assign pid, or all coordinates {' or '.join(f'({pair})' for pair in pairs)}"


def grid_names(kernel: Kernel) -> dict[str, str]:
    """Names defined by a kernel's grid, with their meaning."""
    grid, last = kernel.grid, kernel.grid.num_pids - 1
    names = {"pid": f"linear id that the hardware gave, 0 to {last}", "num_pids": "workgroups in all"}
    if kernel.programs:
        names = {"pid": f"linear id of the tile that a program took, 0 to {last}", "num_pids": "tiles in all"}
    if grid.tiles:
        names["num_pid_m, num_pid_n"] = f"tile rows and columns, {grid.tiles[0]} and {grid.tiles[1]}"
        names["pid_m, pid_n"] = "tile of this id in launch order: pid // num_pid_n, pid % num_pid_n"
    elif len(grid.launch) > 1:
        axes = "xyz"[: len(grid.launch)]
        inner = " + num_pid_x * (pid_y + num_pid_y * pid_z)" if len(axes) == 3 else " + num_pid_x * pid_y"
        names["pid"] += f": pid_x{inner}"
        for axis, side in zip(axes, grid.launch, strict=True):
            names[f"pid_{axis}, num_pid_{axis}"] = f"tl.program_id and tl.num_programs along {axis}, of {side}"
        if len(grid.launch) == 2:
            names["pid_m, pid_n"] = "the same as pid_x, pid_y"
    return names


def source_of(kernel: Kernel) -> str:
    """Triton source without docstrings and imports, which tell a model nothing of the addresses."""
    text = kernel.triton_source
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return text
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and node in tree.body:
            left_out |= set(range(node.lineno, node.end_lineno + 1 if node.end_lineno else node.lineno + 1))
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            said = node.body[0]
            if len(node.body) > 1 and said.end_lineno is not None:
                left_out |= set(range(said.lineno, said.end_lineno + 1))
    kept = (line for number, line in enumerate(text.splitlines(), 1) if number not in left_out)
    return "\n".join(kept).strip("\n") + "\n"


def access_summary(scorer: Scorer, *, hardware: bool = True) -> dict[str, Any]:
    """Grid, tensors, work and index tables; with the sharing that was counted where the kernel itself says nothing."""
    kernel, trace = scorer.kernel, scorer.plan.trace
    touches = np.zeros(len(trace.tensors), np.int64)
    np.add.at(touches, trace.tensor[trace.template], trace.entries_per_template[trace.template])
    tensors = {
        t.name: {"bytes": t.size_bytes, "touches_per_line": round(float(n) / t.n_lines, 2)}
        for t, n in zip(trace.tensors, touches, strict=True)
    }
    l2, work = scorer.gpu.l2, str(scorer.work).replace("tensor instructions", "loads and stores of blocks")
    summary: dict[str, Any] = {"grid": str(kernel.grid), "tensors": tensors, "work": work}
    if hardware:
        read, written = l2.line_bytes // l2.read_request_bytes, l2.line_bytes // l2.write_request_bytes
        summary["requests"] = f"hit rates count requests: a line is {read} when read, {written} when written"
    if kernel.programs:
        takes = f"program p, which the hardware starts as workgroup p, computes ids p, p + {kernel.programs}, ..."
        if kernel.claims:
            pools, local, steals = kernel.claims.pools, kernel.claims.local, kernel.claims.steals
            takes = f"a free program p claims the next of ids p % {pools}, p % {pools} + {pools}, ... below {local}, "
            takes += "or, once those are gone, " + "of the pools after its own in turn, then " * steals
            takes += "the next of the other ids"
        summary["persistent"] = f"{kernel.programs} programs; {takes}"
    if tables := index_tables(kernel):
        summary["index_tables"] = tables
    if not kernel.sharing.strip():
        middle = middle_of(kernel.grid)
        shared = sharing(trace, middle)
        gpu = scorer.gpu if hardware else None
        summary["sharing"] = sharing_words(shared, kernel.grid, middle, gpu, kernel.programs)
    return summary


def index_tables(kernel: Kernel) -> dict[str, str]:
    """Small integer tensors whose values decide addresses, such as a table of experts: runs of equal items."""
    try:
        arguments = kernel.launch.arguments if kernel.launch else {}
    except SwizzleSimError:  # a recorded kernel whose file is gone
        return {}
    names = [
        name
        for name, one in arguments.items()
        if isinstance(one, Array) and one.is_index and one.role == "in" and np.prod(one.shape) <= MOST_ITEMS
    ]
    if not names or kernel.launch is None:
        return {}
    values = kernel.launch.make_inputs(0)
    runs = {name: _runs(np.asarray(values[name]).ravel()) for name in names if name in values}
    return {name: text for name, text in runs.items() if text}


def _runs(values: np.ndarray) -> str:
    """Such as ``0 x 22, 1 x 20``; empty where there are too many runs to show."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1])
    if starts.size > MOST_RUNS:
        return ""
    counts = np.diff([*starts.tolist(), values.size])
    return ", ".join(f"{values[at]} x {n}" if n > 1 else str(values[at]) for at, n in zip(starts, counts, strict=True))
