"""``bundle``, ``import``, ``confirm``, ``agreement``: finalists to a node with the GPU, and its counts compared."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from swizzle_sim.base.atomic_write import write_whole
from swizzle_sim.cli.arguments import (
    REPLAY_WORDS,
    SWIZZLE_WORDS,
    GpuName,
    Json,
    Launch,
    Sizes,
    grouped,
    known_families,
    known_kernels,
    load_swizzle,
    offer,
    option,
    run_folders,
)
from swizzle_sim.cli.output import line, pct, print_json, sizes_text, table, table_of
from xcd_model.errors import CompileError, HardwareError, RunError

if TYPE_CHECKING:
    from swizzle_sim.hardware.agreement import Agreement
    from swizzle_sim.hardware.measurement import Measurement

Top = Annotated[int, option("--top", min=1, max=100, help="How many of the best candidates.")]
Check = Annotated[bool, option("--check/--no-check", help="Interpret and compile each rewritten kernel first.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.", autocompletion=offer(run_folders))]
_SWIZZLES = "Of a KERNEL: a candidate; repeatable."
Swizzles = Annotated[
    list[str] | None, option("--swizzle", metavar=SWIZZLE_WORDS, help=_SWIZZLES, autocompletion=offer(known_families))
]


@dataclass(frozen=True)
class Candidates:
    """Sizes, candidates and GPU of a kernel; a run has its own."""

    sizes: Sizes = None
    swizzle: Swizzles = None
    gpu: GpuName = "mi300x"


@grouped
def bundle(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RUN|KERNEL",
            help="Run folder, or a kernel with --swizzle.",
            autocompletion=offer(lambda: [*run_folders(), *known_kernels()]),
        ),
    ],
    out: Annotated[Path | None, option("--out", "-o", help="Folder to make; by default NAME-bundle.")] = None,
    top: Top = 3,
    candidates: Candidates = Candidates(),
    seed: Annotated[int, option("--seed", help="Seed of the inputs.")] = 0,
    check: Check = True,
    json: Json = False,
) -> None:
    """Make a folder that confirms candidates on a node with the GPU: needs only ROCm (or CUDA), PyTorch and Triton."""
    from swizzle_sim.hardware.runs import bundle_run

    run = Path(what)
    folder = out or Path(f"{run.name or what}-bundle")
    if (run / "history.sqlite").is_file():
        if candidates.sizes or candidates.swizzle:
            raise HardwareError(
                "a run has its own sizes and candidates: leave sizes and --swizzle out, or name a kernel"
            )
        manifest = bundle_run(run, top, folder, seed=seed, check=check)
    else:
        manifest = _of_kernel(what, candidates, folder, seed, check)
    if json:
        keys = ("bundle", "kernel", "problem", "gpu", "run")
        names = [one["name"] for one in manifest["candidates"]]
        print_json({"folder": str(folder), **{key: manifest[key] for key in keys}, "candidates": names})
        return
    for one in manifest["candidates"]:
        line(f"  {one['file']}: {one['name']}{price_of(one)}")
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    line(f"written: {folder}/ ({len(manifest['files']) + 1} files, {size / 1e6:.1f} MB)")
    line(f"on the node: python {folder.name}/confirm.py")
    line(f"back here: swizzle-sim import {folder.name}/result.json")


def price_of(candidate: dict[str, Any]) -> str:
    """What a candidate of a bundle costs in registers, in brackets; empty where it was not compiled."""
    from swizzle_sim.workload.price import RemapPrice

    known = (candidate["predicted"] or {}).get("price")
    if not known:
        return ""
    price = RemapPrice.from_dict(known)
    return f" ({price}{'; ' + price.advice if price.advice else ''})"


def _of_kernel(name: str, given: Candidates, folder: Path, seed: int, check: bool) -> dict[str, Any]:
    from swizzle_sim.hardware.bundle import Finalist, make_bundle
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.rewrite.price import score_as_compiled

    if Path(name).is_dir():
        raise RunError(f"{name}: no run here (no history.sqlite); `swizzle-sim runs` lists the runs there are")
    if not given.swizzle:
        raise HardwareError(f"{name}: no such run folder; of a kernel, name the candidates with --swizzle")
    workload, device = Launch(name, given.sizes, given.gpu).load()
    scorer = Scorer(workload, device)
    finalists = []
    for one in given.swizzle:
        found = load_swizzle(one)
        try:
            score = score_as_compiled(scorer, found)
        except CompileError as error:
            print(f"{one}: written in the general form, not compiled: {error}", file=sys.stderr)
            score = scorer.score(found)
        finalists.append(Finalist(name=found.name or one, source=found.source, score=score))
    return make_bundle(workload, device, finalists, folder, baseline=scorer.baseline, seed=seed, check=check)


def import_(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="result.json, a profiler's file, or registered predictions.")
    ],
    run: Annotated[
        Path | None, option("--run", help="Run (or bundle) it belongs to; by default the one it names.")
    ] = None,
    json: Json = False,
) -> None:
    """Import a result: checked against its bundle, stored with the run, compared with the predictions."""
    from swizzle_sim.hardware.agreement import agreement as compare
    from swizzle_sim.hardware.node.manifest import MANIFEST
    from swizzle_sim.hardware.registered import PREDICTED
    from swizzle_sim.hardware.results import check_result, is_result, keep_result, manifest_for, read_result
    from swizzle_sim.hardware.runs import predictor

    if (result / PREDICTED).is_file():
        _score_registered(result, json)
        return
    if not is_result(result):
        _look_into(result, json)
        return
    found = read_result(result)
    where = run or _home_of(result, found)
    manifest = manifest_for(found, where)
    check_result(found, manifest)
    stored = None if (where / MANIFEST).is_file() else keep_result(where, found)
    _show([compare(manifest, found, predictor(where, manifest))], json, [str(stored)] if stored else [])


def _score_registered(folder: Path, json: bool) -> None:
    """Print how many of the registered predictions in a folder came true."""
    from swizzle_sim.hardware.registered import scored

    found = scored(folder)
    if json:
        print_json({**asdict(found), "figures": found.rows()})
        return
    rows = [
        [row["figure"], str(row["measured"]), str(row["true"]), f"{100 * row['within']:.0f}", _fixed(error, 100.0)]
        for row in found.rows()
        for error in (row["median_error"],)
    ]
    title = f"{found.name}: {len(found.outcomes)} of {found.predictions} registered predictions {found.kind}"
    columns = ("figure", "measured", "true", "within [points, %]", "median error [points, %]")
    table(title, columns, rows, left=1, note="simulated before anybody ran them; " + found.kind)


def _look_into(path: Path, json: bool) -> None:
    """Show what a profiler's own file says; nothing is stored."""
    from swizzle_sim.hardware.readers import read_profile

    found = read_profile(path)
    if json:
        document = {"format": found.format, "dispatches": [asdict(one) for one in found.dispatches]}
        print_json({**document, "agents": [asdict(one) for one in found.agents], "notes": list(found.notes)})
        return
    rows = [
        [one.kernel[:60], str(one.number), _fixed(one.duration_ns, 1e-3), name, f"{value:.6g}"]
        for one in found.dispatches
        for name, value in (one.counters or {"-": float("nan")}).items()
    ]
    if rows:
        table(f"{path}: {found.format}", ("kernel", "launch", "time [µs]", "counter", "value"), rows, left=1)
    for agent in found.agents:
        line(f"{agent.name} {agent.product}: {agent.xcds} XCDs, {agent.compute_units} CUs")
    for note in found.notes:
        line(f"note: {note}")


def _fixed(value: float | None, scale: float = 1.0, digits: int = 1) -> str:
    return "-" if value is None else f"{scale * value:.{digits}f}"


def _home_of(path: Path, result: dict[str, Any]) -> Path:
    """Run folder that has the bundle's record; the bundle's own folder where it was of no run."""
    from swizzle_sim.hardware.node.manifest import MANIFEST
    from swizzle_sim.hardware.results import BUNDLES, read_json
    from swizzle_sim.search.history import runs_in

    manifest = path.parent / MANIFEST
    named = read_json(manifest).get("run") if manifest.is_file() else ""
    tried = [*([Path(named)] if named else []), *runs_in("runs"), *runs_in(".")]
    for folder in tried:
        if (folder / BUNDLES / f"{result['bundle'][:16]}.json").is_file():
            return folder
    if manifest.is_file():
        return path.parent
    raise HardwareError(
        f"{path}: no run here has made bundle {result['bundle'][:12]}: name it with --run RUN", code="other-bundle"
    )


def confirm(
    run: RunFolder,
    top: Top = 3,
    out: Annotated[Path | None, option("--out", "-o", help="Bundle to make; by default RUN-bundle.")] = None,
    profiler: Annotated[str | None, option("--profiler", help="Path of rocprofv3 or ncu.")] = None,
    samples: Annotated[int, option("--samples", min=50, help="Timed launches a candidate.")] = 100,
    check: Check = False,
    json: Json = False,
) -> None:
    """On the node: bundle, confirm and import at once. Exit 1 if something could not be timed or counted."""
    import subprocess

    from swizzle_sim.hardware.results import read_result
    from swizzle_sim.hardware.runs import bundle_run

    folder = out or Path(f"{run.name}-bundle")
    bundle_run(run, top, folder, check=check)
    words = [sys.executable, str(folder / "confirm.py"), "--samples", str(samples)]
    done = subprocess.run([*words, *(["--profiler", profiler] if profiler else [])], stdout=sys.stderr, check=False)
    if done.returncode not in (0, 1):
        raise typer.Exit(done.returncode)
    read_result(folder / "result.json")
    import_(folder / "result.json", run, json)
    raise typer.Exit(done.returncode)


def agreement(
    where: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|DIR", help="Run, or a bundle with its result.json.", autocompletion=offer(run_folders)
        ),
    ],
    replay: Annotated[
        str | None,
        option("--replay", help="Predict anew: lockstep or timed.", autocompletion=offer(lambda: REPLAY_WORDS)),
    ] = None,
    json: Json = False,
) -> None:
    """Compare predicted with measured hit rate, traffic, time and ranks; drawn, and stored as fidelity rows."""
    from swizzle_sim.hardware.runs import agreements_in

    found = agreements_in(where, replay)
    _show(found, json, _stored(where, found))


def _stored(where: Path, found: list[Agreement]) -> list[str]:
    """Write the picture and the rows of each; only what was measured makes rows."""
    from swizzle_sim.hardware.agreement import csv_of, draw_agreement

    written = []
    for one in found:
        stem = f"agreement-{one.manifest['bundle'][:12]}"
        files = {f"{stem}.png": draw_agreement(one)} if one.comparisons else {}
        if one.kind == "measured":
            files[f"{stem}.csv"] = csv_of(one).encode()
        for name, data in files.items():
            write_whole(where / name, data)
            written.append(str(where / name))
    return written


def _show(found: list[Agreement], json: bool, written: list[str]) -> None:
    if json:
        print_json({"agreements": [_document(one) for one in found], "written": written})
        return
    for one in found:
        _print(one)
    for path in written:
        line(f"written: {path}")


def _document(one: Agreement) -> dict[str, Any]:
    return {
        "bundle": one.manifest["bundle"],
        "kernel": one.manifest["kernel"],
        "problem": one.manifest["problem"],
        "gpu": one.manifest["gpu"],
        "machine": one.result["machine"],
        "kind": one.kind,
        "replay": one.manifest["replay"],
        "candidates": [{**asdict(m), "predicted": one.predicted[m.candidate]} for m in one.measurements],
        "comparisons": [
            {
                **{"figure": c.figure.name, "unit": c.figure.unit, "candidates": list(c.candidates)},
                **{"predicted": list(c.predicted), "measured": list(c.measured)},
                **{"rank_correlation": c.rank_correlation, "same_winner": c.same_winner},
            }
            for c in one.comparisons
        ],
        "notes": one.result["notes"],
    }


def _print(one: Agreement) -> None:
    kind, replay = one.kind, one.manifest["replay"]
    reads = "read from the fabric" if one.manifest["gpu"]["vendor"] == "amd" else "read from memory"

    def guess(name: str) -> Callable[[Measurement], Any]:
        return lambda m: (one.predicted[m.candidate] or {}).get(name)

    rate, read, time_us = guess("l2_hit_rate"), guess("hbm_read_bytes"), guess("time_us")
    columns: dict[str, Callable[[Measurement], str]] = {
        "outputs": lambda m: m.right,
        "L2 hit rate [%]\nsimulated": lambda m: pct(rate(m)),
        f"\n{kind}": lambda m: pct(m.l2_hit_rate),
        "HBM reads [GB]\nsimulated": lambda m: _fixed(read(m), 1e-9, 3),
        f"{reads} [GB]\n{kind}": lambda m: _fixed(m.read_bytes, 1e-9, 3),
        "time [µs]\nsimulated": lambda m: _fixed(time_us(m)),
        f"\n{kind}, cold": lambda m: _fixed(m.time_cold_us),
        f"\n{kind}, warm": lambda m: _fixed(m.time_warm_us),
    }
    title = f"{one.manifest['kernel']} {sizes_text(one.manifest['problem'])}: {one.manifest['gpu']['title']}"
    note = f"simulated by the {replay} replay; {kind} on {one.result['machine']['name']}"
    table_of(title, "swizzle", columns, [(m.name, m) for m in one.measurements], left=2, note=note)
    for said in one.sentences:
        line(said)
    if kind == "replayed":
        line("replayed: these counts come from a stand-in or a recording; nothing here was measured")
    for doubt in one.doubts:
        line(doubt)
