"""``bundle`` and ``import``: finalists to a node with the GPU, and its counts compared with the predictions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import (
    REPLAY_WORDS,
    SWIZZLE_WORDS,
    GpuName,
    Json,
    Launch,
    Sizes,
    argument,
    grouped,
    known_families,
    known_kernels,
    load_swizzle,
    option,
    run_folders,
)
from swizzle_sim.cli.output import fixed, line, pct, print_json, sizes_text, table_of
from swizzle_sim.search.history import FILE, runs_in
from xcd_model.errors import CompileError, HardwareError, RunError

if TYPE_CHECKING:
    from swizzle_sim.hardware.agreement import Agreement
    from swizzle_sim.hardware.registered import Registered
    from swizzle_sim.hardware.results import Measurement

Check = Annotated[bool, option("--check/--no-check", help="Interpret and compile each rewritten kernel first.")]
_SWIZZLES = "Of a KERNEL: a candidate; repeatable."


@dataclass(frozen=True)
class Candidates:
    """Sizes, candidates and GPU of a kernel; a run has its own."""

    sizes: Sizes = None
    swizzle: Annotated[
        list[str] | None, option("--swizzle", metavar=SWIZZLE_WORDS, help=_SWIZZLES, offers=known_families)
    ] = None
    gpu: GpuName = "mi300x"


@grouped
def bundle(
    what: Annotated[
        str,
        argument("RUN|KERNEL", "Run folder, or a kernel with --swizzle.", lambda: [*run_folders(), *known_kernels()]),
    ],
    out: Annotated[Path | None, option("--out", "-o", help="Folder to make; by default NAME-bundle.")] = None,
    top: Annotated[int, option("--top", min=1, max=100, help="How many of the best candidates.")] = 3,
    candidates: Candidates = Candidates(),
    seed: Annotated[int, option("--seed", help="Seed of the inputs.")] = 0,
    check: Check = True,
    json: Json = False,
) -> None:
    """Make a folder that confirms candidates on a node with the GPU: needs only ROCm (or CUDA), PyTorch and Triton."""
    from swizzle_sim.hardware.runs import bundle_run

    run = Path(what)
    folder = out or Path(f"{run.name or what}-bundle")
    of_run = (run / FILE).is_file()
    if of_run and (candidates.sizes or candidates.swizzle):
        raise HardwareError("a run has its own sizes and candidates: leave sizes and --swizzle out, or name a kernel")
    with Progress("bundling", "orders") as progress:
        how: dict[str, Any] = {"seed": seed, "check": check, "on_candidate": progress}
        manifest = bundle_run(run, top, folder, **how) if of_run else _of_kernel(what, candidates, folder, **how)
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


def _of_kernel(name: str, given: Candidates, folder: Path, seed: int, **how: Any) -> dict[str, Any]:
    from swizzle_sim.hardware.bundle import Finalist, Origin, make_bundle
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
    return make_bundle(workload, device, finalists, folder, baseline=scorer.baseline, origin=Origin(seed=seed), **how)


def import_(
    result: Annotated[
        Path,
        argument("RESULT|RUN|DIR", "result.json of confirm.py; a run or a bundle, again; or registered predictions."),
    ],
    run: Annotated[
        Path | None, option("--run", help="Run (or bundle) it belongs to; by default the one it names.")
    ] = None,
    replay: Annotated[
        str | None, option("--replay", help="Of a run or bundle: predict anew, lockstep or timed.", offers=REPLAY_WORDS)
    ] = None,
    json: Json = False,
) -> None:
    """Import a result: checked against its bundle, stored with the run, compared with the predictions.

    Of a run or a bundle that has results, compare again.
    """
    from swizzle_sim.hardware.agreement import agreement as compare
    from swizzle_sim.hardware.node.manifest import MANIFEST
    from swizzle_sim.hardware.registered import PREDICTED, scored
    from swizzle_sim.hardware.results import MEASUREMENTS, check_result, keep, manifest_for, read_result
    from swizzle_sim.hardware.runs import agreements_in, predictor

    if (result / PREDICTED).is_file():
        _show_registered(scored(result), json)
        return
    if result.is_dir():
        with Progress("predicting again"):
            again = agreements_in(result, replay)
        _show(again, json, [])
        return
    found = read_result(result)
    where = run or _home_of(result, found)
    manifest = manifest_for(found, where)
    check_result(found, manifest)
    stored = None if (where / MANIFEST).is_file() else keep(where / MEASUREMENTS, found)
    with Progress("comparing with the predictions"):
        compared = compare(manifest, found, predictor(where, manifest))
    _show([compared], json, [str(stored)] if stored else [])


def _show_registered(found: Registered, json: bool) -> None:
    """Print how many of the registered predictions in a folder came true."""
    if json:
        print_json({**asdict(found), "figures": found.rows()})
        return
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "measured": lambda row: str(row["measured"]),
        "true": lambda row: str(row["true"]),
        "within [points, %]": lambda row: f"{100 * row['within']:.0f}",
        "median error [points, %]": lambda row: fixed(row["median_error"], 100),
    }
    title = f"{found.name}: {len(found.outcomes)} of {found.predictions} registered predictions {found.kind}"
    rows = ((row["figure"], row) for row in found.rows())
    table_of(title, "figure", columns, rows, note="simulated before anybody ran them; " + found.kind)


def _home_of(path: Path, result: dict[str, Any]) -> Path:
    """Run folder that has the bundle's record; the bundle's own folder where it was of no run."""
    from swizzle_sim.hardware.node.manifest import MANIFEST
    from swizzle_sim.hardware.results import BUNDLES, read_json

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


def _show(found: list[Agreement], json: bool, written: list[str]) -> None:
    if json:
        print_json({"agreements": [_document(one) for one in found], "written": written})
        return
    for one in found:
        _print(one)
    for path in written:
        line(f"written: {path}")


def _document(one: Agreement) -> dict[str, Any]:
    from swizzle_sim.hardware.agreement import outcome

    return {
        **{key: one.manifest[key] for key in ("bundle", "kernel", "problem", "gpu")},
        "machine": one.result["machine"],
        "kind": one.kind,
        "replay": one.manifest["replay"],
        "candidates": [{**asdict(m), "predicted": one.predicted[m.candidate]} for m in one.measurements],
        "comparisons": [
            {
                **{"figure": c.figure.name, "unit": c.figure.unit, "candidates": list(c.candidates)},
                **{"predicted": list(c.predicted), "measured": list(c.measured)},
                **{"same_winner": c.same_winner, "spread": list(c.spread)},
                **dict(zip(("pairs_apart", "pairs_right"), c.pairs, strict=True)),
            }
            for c in one.comparisons
        ],
        "outcome": outcome(one),
        "notes": one.result["notes"],
    }


def _print(one: Agreement) -> None:
    from swizzle_sim.hardware.node.formulas import formulas_of

    kind, replay = one.kind, one.manifest["replay"]
    reads = "read from the fabric" if one.manifest["gpu"]["vendor"] == "amd" else "read from memory"

    def guess(name: str) -> Callable[[Measurement], Any]:
        return lambda m: (one.predicted[m.candidate] or {}).get(name)

    rate, read, time_us = guess("l2_hit_rate"), guess("hbm_read_bytes"), guess("time_us")
    columns: dict[str, Callable[[Measurement], str]] = {
        "outputs": lambda m: m.right,
        "L2 hit rate [%]\nsimulated": lambda m: pct(rate(m)),
        f"\n{kind}": lambda m: pct(m.l2_hit_rate),
        "HBM reads [GB]\nsimulated": lambda m: fixed(read(m), 1e-9, 3),
        f"{reads} [GB]\n{kind}": lambda m: fixed(m.read_bytes, 1e-9, 3),
        "time [µs]\nsimulated": lambda m: fixed(time_us(m)),
        f"\n{kind}, cold": lambda m: fixed(m.time_cold_us),
        f"\n{kind}, warm": lambda m: fixed(m.time_warm_us),
    }
    title = f"{one.manifest['kernel']} {sizes_text(one.manifest['problem'])}: {one.manifest['gpu']['title']}"
    note = f"simulated by the {replay} replay; {kind} on {one.result['machine']['name']}"
    table_of(title, "swizzle", columns, [(m.name, m) for m in one.measurements], left=2, note=note)
    for said in one.sentences:
        line(said)
    if kind == "replayed":
        line("replayed: these counts come from a stand-in or a recording; nothing here was measured")
    for formula in formulas_of(one.manifest["gpu"]["arch"]):
        line(f"{formula} ({formula.source})")
    for doubt in one.doubts:
        line(doubt)
