"""``gpus``, ``kernels``, ``show``: the GPUs and kernels there are, and what the workgroups of a kernel share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from swizzle_sim.base.progress import Progress
from swizzle_sim.cli.arguments import GpuName, Json, Launch, argument, grouped, known_kernels, option
from swizzle_sim.cli.output import console, line, pct, print_json, say, sizes_text, table, table_of
from xcd_model.errors import CompileError, ReplayError, SwizzleSimError

FIGURES = (
    *("workgroups_per_cu", "instructions", "line_touches", "distinct_lines", "ideal_reuse", "footprint_bytes"),
    *("flops_per_byte", "bound_l2_hit_rate"),
)

OPTIONS = ("num_warps", "num_stages", "waves_per_eu", "matrix_instr_nonkdim", "kpack", "enable_fp_fusion")

if TYPE_CHECKING:
    from swizzle_sim.capture.occupancy import Compiled, OccupancyLimits
    from swizzle_sim.search.facts import Facts
    from swizzle_sim.workload.kernels import Kernel
    from xcd_model import Gpu


_SHOWN = {  # figures of the table by the facts that they come from
    "XCDs": ("xcds",),
    "CUs": ("cus_per_xcd",),
    "L2": ("l2.size_bytes",),
    "Infinity Cache": ("mall.size_bytes",),
    "HBM": ("hbm.size_bytes", "hbm.peak_bandwidth_gbps"),
}


def _assumed(gpu: Gpu, key: str) -> bool:
    one_l2 = key == "xcds" and gpu.xcds == 1  # how a GPU with one L2 is modelled
    return not one_l2 and key in gpu.facts and gpu.facts[key].status == "assumed"


def gpus(json: Json = False) -> None:
    """List the GPUs of the model."""
    from xcd_model import gpu, gpu_modes, gpu_names

    found = [gpu(name) for name in gpu_names()]
    if json:
        print_json({"gpus": found})
        return
    columns = {
        "arch": lambda g: g.arch,
        "XCDs": lambda g: str(g.xcds),
        "CUs\na XCD": lambda g: str(g.cus_per_xcd),
        "L2 a XCD\n[MiB]": lambda g: f"{g.l2.size_bytes / 2**20:g}",
        "Infinity\nCache\n[MiB]": lambda g: f"{g.mall.size_bytes / 2**20:g}" if g.mall else "-",
        "HBM\n[GiB]": lambda g: f"{g.hbm.size_bytes / 2**30:g}",
        "HBM\n[TB/s]": lambda g: f"{g.hbm.peak_bandwidth_gbps / 1e3:.1f}",
    }
    note = "every number has a status (docs/gpus.md) and a source (--json)"
    for g in found:
        if guessed := [name for name, keys in _SHOWN.items() if any(_assumed(g, key) for key in keys)]:
            note += f"\n{g.name}: assumed, not published: {', '.join(guessed)}"
    chips = [g.name for g in found if ("CPX", "NPS1") in gpu_modes(g.name)]
    note += f"\n{chips[0]}-cpx and its like are one XCD with one L2: nothing to swizzle over XCDs"
    table_of("GPUs", "name", columns, [(g.name, g) for g in found], left=2, note=note)


def kernels(
    names: Annotated[list[str] | None, argument("KERNEL", "Kernels; by default all.", known_kernels)] = None,
    gpu: GpuName = "mi300x",
    json: Json = False,
) -> None:
    """List the kernels of the suite at their default sizes: what they touch, and the bound on the hit rate."""
    from swizzle_sim.workload.kernels import kernel, kernel_names
    from xcd_model import gpu as load_gpu

    device, chosen = load_gpu(gpu), list(dict.fromkeys(names or kernel_names()))
    whole: list[Kernel] = []
    broken: dict[str, str] = {}
    for name in chosen:
        try:
            whole.append(kernel(name))
        except SwizzleSimError as error:
            if names:
                raise
            broken[name] = str(error)
    found = _all_facts(whole, device, broken)
    if json:
        listed = [_entry(k, facts) for k, facts in found]
        print_json({"gpu": device.name, "kernels": listed} | ({"broken": broken} if broken else {}))
        return
    columns: dict[str, Callable[[Any], str]] = {
        "what": lambda one: one[0].summary,
        "grid": lambda one: str(one[0].grid),
        "tensors\n[MiB]": lambda one: _size(one[1].footprint_bytes) if one[1] else "-",
        "flops\na byte": lambda one: f"{one[0].flops / one[1].footprint_bytes:.3g}" if one[1] else "-",
        "touches\na line": lambda one: f"{one[1].ideal_reuse:.3g}" if one[1] else "-",
        "bound on L2\nhit rate [%]": lambda one: pct(one[1].bound_l2_hit_rate if one[1] else None),
    }
    note = (
        "touches a line: ideal reuse, in one cache of infinite size; "
        f"bound: no balanced bijection on {device.title} exceeds it"
    )
    note += "".join(f"\nbroken: {name}: {why}" for name, why in broken.items())
    named = [(one[0].name, one) for one in found]
    table_of("Kernels at their default sizes", "name", columns, named, left=3, note=note)


def _all_facts(found: list[Kernel], device: Gpu, broken: dict[str, str]) -> list[tuple[Kernel, Facts | None]]:
    """Facts of all kernels, None where one does not fit the GPU; with progress on stderr where they are not cached.

    One that cannot be traced joins the ``broken``, with the reason.
    """
    from swizzle_sim.search.facts import facts_of, is_known

    unknown = sum(k.runs_on(device) and not is_known(k, device) for k in found)
    if unknown and not sys.stderr.isatty():
        say(f"tracing {unknown} kernels, once; the figures are cached ...")
    listed: list[tuple[Kernel, Facts | None]] = []
    with Progress("tracing kernels, once", "kernels") as progress:
        for number, k in enumerate(found):
            if unknown:
                progress(number, len(found), note=k.name)
            try:
                listed.append((k, facts_of(k, device)))
            except ReplayError as error:
                progress.say(f"{k.name}: {error}")
                listed.append((k, None))
            except SwizzleSimError as error:
                broken[k.name] = str(error)
    return listed


def _entry(k: Kernel, facts: Facts | None) -> dict[str, Any]:
    figures: dict[str, Any] = {name: getattr(facts, name, None) for name in FIGURES}
    return {
        **{"name": k.name, "summary": k.summary, "problem": dict(k.problem), "grid": list(k.grid.launch)},
        **{"tiles": list(k.grid.shape) if k.grid.shape else None, "launches": k.launches, "flops": k.flops},
        **figures,
        "flops_per_byte": k.flops / facts.footprint_bytes if facts else None,
    }


def _size(size_bytes: int) -> str:
    mib = size_bytes / 2**20
    return f"{mib:,.0f}" if mib >= 10 else f"{mib:.2g}"


@grouped
def show(
    launch: Launch,
    workgroup: Annotated[
        int | None, option("--workgroup", help="Tile whose sharers are shown; by default the middle one.")
    ] = None,
    json: Json = False,
) -> None:
    """Explain what a kernel touches, which workgroups share it, what limits its occupancy, and the bound on hits."""
    from swizzle_sim.capture.occupancy import limits_of
    from swizzle_sim.pricing.scoring import Scorer
    from swizzle_sim.pricing.sharing import middle_of, sharing, sharing_words
    from swizzle_sim.search.facts import work_out

    scorer = Scorer(*launch.load(), replay="lockstep")
    k = scorer.kernel
    chosen = middle_of(k.grid) if workgroup is None else workgroup
    shared = sharing(scorer.plan.trace, chosen)
    with Progress("tracing the kernel, and finding its bound"):
        facts = work_out(scorer)
    words = sharing_words(shared, k.grid, chosen, scorer.gpu, k.programs)
    compiled, limits = _compiled(k, scorer.gpu), limits_of(k.resources, scorer.gpu)
    if json:
        about = {key: value for key, value in _entry(k, facts).items() if key not in ("name", "summary")}
        print_json(
            {
                **{"kernel": k.name, "gpu": scorer.gpu.name, **about},
                "work": scorer.work,
                "sharing": k.sharing,
                "workgroup": chosen,
                "shared": [
                    {"tensor": one.tensor, "lines": one.lines, "sharers": int((one.share > 0).sum()) - 1, "words": said}
                    for one, said in zip(shared, words, strict=True)
                ],
                "resources": k.resources,
                "compiled": compiled,
                "alone": dict(limits.alone),
                "limited_by": list(limits.short),
                "sources": list(k.sources),
            }
        )
        return
    tensors = [f"{t.name} {_size(t.size_bytes)} MiB" for t in scorer.plan.trace.tensors]
    more = {"tensors": ", ".join(tensors), "work": str(scorer.work)}
    _print_facts(k, scorer.gpu, facts, more | _occupancy_rows(k, limits, compiled))
    _print_sharing(k, words, shared, chosen)


def _compiled(k: Kernel, gpu: Gpu) -> Compiled | None:
    """Figures of the compiler for a kernel, or None where it cannot be compiled here."""
    from swizzle_sim.capture.occupancy import compile_launch

    try:
        return compile_launch(k.launch, gpu.arch) if k.launch else None
    except CompileError:
        return None


def _occupancy_rows(k: Kernel, limits: OccupancyLimits, compiled: Compiled | None) -> dict[str, str]:
    """Registers, LDS, spills and the limit of the occupancy; as declared where nothing was compiled."""
    alone = ", ".join(f"{name} {fits}" for name, fits in limits.alone.items())
    rows = {"limited by": f"{' and '.join(limits.short)} (each alone would allow: {alone})"}
    rows["threads a workgroup"] = str(k.resources.threads)
    if not compiled:
        return rows | {"VGPRs": str(k.resources.vgprs), "LDS a workgroup": f"{k.resources.lds_bytes:,} B"}
    steps = "pipelined" if compiled.pipelined else "not pipelined"
    options: dict[str, Any] = dict(compiled.options)
    flight = f"{compiled.instructions_in_flight} (assumed: {compiled.loads_per_step} loads a step, {steps})"
    spilled = f"{compiled.vgpr_spills} VGPRs, {compiled.sgpr_spills} SGPRs; {compiled.scratch_bytes} B a lane"
    spilled += ": a smaller tile or more warps would help" if compiled.vgpr_spills or compiled.sgpr_spills else ""
    return rows | {
        "VGPRs": f"{compiled.vgprs} allocated, {compiled.vgprs_used} used ({compiled.agprs_used} of them AGPRs)",
        "SGPRs": str(compiled.sgprs),
        "LDS a workgroup": f"{compiled.lds_bytes:,} B",
        "spilled": spilled,
        "instructions in flight": flight,
        "options": ", ".join(f"{name}={options[name]}" for name in OPTIONS if name in options),
    }


def _print_facts(k: Kernel, gpu: Gpu, facts: Facts, more: dict[str, str]) -> None:
    times = f"{k.launches} times in a row; caches are warm" if k.launches > 1 else "once"
    rows = [
        ("sizes", sizes_text(k.problem)),
        ("grid", str(k.grid)),
        *([("launched", times)] if k.launches > 1 else []),
        ("workgroups per CU", f"{facts.workgroups_per_cu} ({k.resources.source})"),
        *more.items(),
        ("line touches", f"{facts.line_touches:,} in {facts.instructions:,} tensor instructions"),
        ("ideal reuse", f"{facts.ideal_reuse:.3g} touches of each of {facts.distinct_lines:,} lines"),
        ("flops per byte", f"{k.flops / facts.footprint_bytes:.3g}"),
        ("bound on the L2 hit rate", f"{pct(facts.bound_l2_hit_rate)} % (no balanced bijection exceeds it)"),
        ("sources", "; ".join(k.sources)),
    ]
    table(f"{k.name} on {gpu.title}: {k.summary}", ("", ""), rows, left=2)


def _print_sharing(k: Kernel, words: list[str], shared: Any, chosen: int) -> None:
    from swizzle_sim.report.display.sharing_map import draw_text

    out = console()
    width = out.width if out.is_terminal else 110
    if k.sharing:
        line(" ".join(k.sharing.split()))
    line("")
    for said in words:
        line(f"- {said}")
    unicode = (sys.stdout.encoding or "").lower().replace("-", "").startswith("utf")
    line("")
    line(draw_text(shared, k.grid, chosen, width, unicode))
