"""``retune``: what the model says of each row of a library's tuned table, and the table with other orders."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.cli.arguments import Json, Sizes, argument, grouped, known_gpus, option, parse_sizes
from swizzle_sim.cli.output import line, print_json, say, simulated, sizes_text, table
from swizzle_sim.cli.sweeping import SweepRun
from xcd_model.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from swizzle_sim.search.tables.judge import Finding
    from swizzle_sim.search.tables.read import Table

_FILE = "Table: aiter's CSV, hipBLASLt's logic file (YAML), fused MoE or block GEMM of vLLM and SGLang, Triton's cache."
_GPU = "GPU of the rows, where it is not the one that the file says."
_CALLS = "CSV with a column for each size, and calls: how often each is launched."
_AGAINST = "Table of another GPU, whose rows this one may have copied; repeatable."
_KEY = "Names of the integers in the key of a Triton cache."
_OUT = "Write the table with other orders, the changed rows marked where the format has room."


@dataclass(frozen=True)
class Retuned:
    """What rows are judged by, and what is written of them."""

    gpu: Annotated[str, option("--gpu", metavar="GPU", help=_GPU, offers=known_gpus)] = ""
    calls: Annotated[Path | None, option("--calls", metavar="FILE", help=_CALLS)] = None
    against: Annotated[list[Path] | None, option("--against", metavar="FILE", help=_AGAINST)] = None
    key: Annotated[str, option("--key", metavar="NAMES", help=_KEY)] = "M,N,K"
    jobs: Annotated[int, option("--jobs", min=-1, max=1024, help="Processes; -1 for one a core.")] = -1
    rows: Annotated[int, option("--rows", min=0, help="Rows to print, largest expected gain first.")] = 20
    out: Annotated[Path | None, option("--out", "-o", metavar="FILE", help=_OUT)] = None


@grouped
def retune(
    file: Annotated[Path, argument("FILE", _FILE)], sizes: Sizes = None, how: Retuned = Retuned(), json: Json = False
) -> None:
    """Judge the rows of a library's tuned table: orders that the model contradicts, and rows that no GPU could want.

    Of a fused MoE, NAME=SIZE says what its file does not: TOPK and K, the hidden size.
    """
    from swizzle_sim.search.tables.read import ASSUMED, read_table, siblings

    if how.out and how.out.resolve() == file.resolve():
        raise RunError(f"{file}: -o would write over the table that is read: name another file")
    given, key = parse_sizes(sizes), [name.strip() for name in how.key.split(",")]
    read = read_table(file, given, key)
    if "E=" in file.name and (left := ASSUMED.keys() - given.keys()):
        say(f"assumed, since the file does not say it: {sizes_text({name: ASSUMED[name] for name in sorted(left)})}")
    found = _findings(
        read, how, [*(read_table(path, given, key) for path in how.against or ()), *siblings(file, given)]
    )
    changed = _write(read, found, how.out) if how.out else {}
    if json:
        about: dict[str, Any] = {"file": str(file), "format": read.format, "replay": "timed", "kind": "simulated"}
        print_json({**about, "counts": _counts(found), "changed": changed, "rows": [one.as_dict() for one in found]})
        return
    _print(read, found, how.rows)
    if how.out:
        line(f"written: {how.out} ({len(changed)} rows changed)")


def _findings(read: Table, how: Retuned, others: list[Table]) -> list[Finding]:
    """All rows, those of most expected gain times calls first."""
    from swizzle_sim.search.policy.sizes import table_of_calls
    from swizzle_sim.search.tables.judge import copies, finding, judged, loaded, point_of

    counts = table_of_calls(how.calls, read.rows[0].sizes) if how.calls else []
    devices = [loaded(name) if (name := how.gpu or row.gpu) else None for row in read.rows]
    points = {
        row.line: point_of(row, device)
        for row, device in zip(read.rows, devices, strict=True) if device and row.launch and not row.why
    }  # fmt: skip
    run = SweepRun(backend="serial" if how.jobs == 1 else "processes", jobs=how.jobs)
    with run.evaluating("retune", "rows") as (rows, *_):
        done = rows(list(points.values()), judged)
    about, copied = dict(zip(points, done, strict=True)), copies(read, others)
    found = [
        finding(row, device, _calls(row.sizes, counts), about.get(row.line, {}), copied.get(row.line, ""))
        for row, device in zip(read.rows, devices, strict=True)
    ]
    return sorted(found, key=lambda one: (-one.weight, not one.contradicts, one.row.line))


def _calls(sizes: Mapping[str, int], counts: list[tuple[dict[str, int], float]]) -> float:
    """Calls of a row: of all lines whose sizes are its own; 1 without a file, 0 of what nobody calls."""
    return sum(calls for one, calls in counts if one.items() <= sizes.items()) if counts else 1.0


def _write(read: Table, found: list[Finding], out: Path) -> dict[str, str]:
    """Write the table; what was changed, by line."""
    changed: dict[str, str] = {}
    for one in found:
        if one.verdict in ("use", "measure"):
            what = read.changed(one.row, one.best, f"{one.verdict} {one.best}")
            changed |= {str(one.row.line): what} if what else {}
    write_whole(out, "".join(read.lines).encode())
    return changed


def _counts(found: list[Finding]) -> dict[str, int]:
    """Rows by what is said of them."""
    few = sum(1 for one in found if one.gpu and 0 < one.row.workgroups < one.gpu.cus)
    of = Counter(one.verdict or "not replayed" for one in found)
    return {
        "rows": len(found), **{name: of[name] for name in ("use", "measure", "leave", "not replayed")},
        "contradicted": sum(bool(one.contradicts) for one in found), "fewer workgroups than CUs": few,
        "more LDS than a CU has": sum("B of LDS" in " ".join(one.notes) for one in found),
        "noise": sum("noise" in " ".join(one.notes) for one in found),
        "copied": sum("letter by letter" in " ".join(one.notes) for one in found),
    }  # fmt: skip


def _print(read: Table, found: list[Finding], most: int) -> None:
    of_many = ("not replayed: ", "the table is ")  # notes that many rows have: told once, below
    own = {one.row.line: [note for note in one.notes if not note.startswith(of_many)] for one in found}
    shown = [one for one in found if one.weight > 0 or one.contradicts or own[one.row.line]][:most]
    cells = []
    for one in shown:
        rate = one.about.get("decides") == "l2_hit_rate"
        gain = f"{100 * one.gain:+.1f} {'points' if rate else '%'}" if one.gain else "-"
        said = "; ".join(filter(None, [one.contradicts, *own[one.row.line]]))
        words = [one.row.named or "-", one.best or "-", one.verdict or "-", said]
        cells.append([str(one.row.line), sizes_text(one.row.sizes), *words, gain, f"{one.calls:g}"])
    heads = ["line", "sizes", "order", "best", "verdict", "what is said of it", "gain", "calls"]
    classes = {(one.gpu.name, one.about["work_class"]) for one in found if one.gpu and one.about}
    note = simulated(*next((gpu, "timed", kind) for gpu, kind in classes)) if len(classes) == 1 else ""
    if cells:
        table(f"{read.path.name}: rows by expected gain times calls", heads, cells, left=6, note=note)
    line(", ".join(f"{name}: {n}" for name, n in _counts(found).items() if n))
    for note, n in Counter(note for one in found for note in one.notes if note.startswith(of_many)).items():
        line(f"{n} rows: {note}")
