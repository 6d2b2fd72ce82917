"""``gpus``, ``kernels``, ``show``: what there is."""

from __future__ import annotations

from swizzle_sim.cli.arguments import GpuName, Json, KernelName, Sizes


def gpus(json: Json = False) -> None:
    """List the GPUs the model knows."""
    from swizzle_sim.cli.output import print_json, table
    from xcd_model.gpu import gpu, gpu_names

    found = [gpu(name) for name in gpu_names()]
    if json:
        print_json({"gpus": [g.as_dict() for g in found]})
        return
    rows = [
        (
            g.name,
            g.arch,
            str(g.xcds),
            str(g.cus_per_xcd),
            f"{g.l2.size_bytes / 2**20:g}",
            f"{g.mall.size_bytes / 2**20:g}" if g.mall else "-",
            f"{g.hbm.size_bytes / 2**30:g}",
            f"{g.hbm.peak_bandwidth_gbps / 1e3:g}",
        )
        for g in found
    ]
    columns = (
        "name",
        "arch",
        "XCDs",
        "CUs\na XCD",
        "L2 a XCD\n[MiB]",
        "Infinity\nCache\n[MiB]",
        "HBM\n[GiB]",
        "HBM\n[TB/s]",
    )
    table("GPUs", columns, rows, left=2, note="every number has a source and a status: docs/gpus.md, or --json")


def kernels(json: Json = False) -> None:
    """List the kernels of the suite at their default sizes."""
    from swizzle_sim.cli.output import print_json, sizes_text, table
    from swizzle_sim.kernels import kernel, kernel_names

    found = [kernel(name) for name in kernel_names()]
    if json:
        print_json(
            {
                "kernels": [
                    {
                        "name": k.name,
                        "summary": k.summary,
                        "problem": dict(k.problem),
                        "grid": list(k.grid.launch),
                        "flops": k.flops,
                    }
                    for k in found
                ]
            }
        )
        return
    rows = [(k.name, k.summary, sizes_text(k.problem), str(k.grid)) for k in found]
    table("Kernels", ("name", "what", "default sizes", "grid"), rows, left=4)


def show(kernel: KernelName, sizes: Sizes = None, gpu: GpuName = "mi300x", json: Json = False) -> None:
    """Explain what a kernel touches, who shares it, and the best hit rate it could have."""
    from swizzle_sim.cli.arguments import load_kernel
    from swizzle_sim.cli.output import console, pct, print_json, sizes_text, table
    from swizzle_sim.scoring import Scorer
    from xcd_model.gpu import gpu as load_gpu

    scorer = Scorer(load_kernel(kernel, sizes), load_gpu(gpu))
    k, trace, bound = scorer.kernel, scorer.plan.trace, scorer.bound
    footprint = sum(t.size_bytes for t in trace.tensors)
    facts = {
        "kernel": k.name,
        "problem": dict(k.problem),
        "gpu": scorer.gpu.name,
        "grid": list(k.grid.launch),
        "tiles": list(k.grid.shape) if k.grid.shape else None,
        "workgroups_per_cu": scorer.occupancy,
        "instructions": trace.n_instructions,
        "line_touches": trace.n_touches,
        "footprint_bytes": footprint,
        "flops": k.flops,
        "flops_per_byte": k.flops / footprint,
        "bound_l2_hit_rate": bound.l2_hit_rate,
        "sharing": k.sharing,
        "resources": k.resources.source,
        "sources": list(k.sources),
    }
    if json:
        print_json(facts)
        return
    rows = [
        ("sizes", sizes_text(k.problem)),
        ("grid", str(k.grid)),
        ("workgroups per CU", f"{scorer.occupancy} ({k.resources.source})"),
        ("tensors", ", ".join(f"{t.name} {t.size_bytes / 2**20:.1f} MiB" for t in trace.tensors)),
        ("line touches", f"{trace.n_touches:,} in {trace.n_instructions:,} tensor instructions"),
        ("flops per byte", f"{facts['flops_per_byte']:.0f}"),
        ("bound on the L2 hit rate", f"{pct(bound.l2_hit_rate)} % (no balanced bijection exceeds it)"),
        ("sources", "; ".join(k.sources)),
    ]
    table(f"{k.name} on {scorer.gpu.title}: {k.summary}", ("", ""), rows, left=2)
    console(wide=True).print(k.sharing.replace("\n", " "), markup=False)
