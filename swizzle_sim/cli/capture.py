"""``capture`` and ``init-kernel``: a Triton kernel to a trace file, and its declaration."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

from swizzle_sim.base.atomic_write import check_folder
from swizzle_sim.cli.arguments import Json, Sizes, argument, capturing, option, parse_sizes
from swizzle_sim.cli.output import line, print_json, sizes_text
from xcd_model.errors import CaptureError

File = Annotated[str, argument("FILE.py", "File with a Kernel(...) declaration, FILE.py:NAME, or a suite kernel.")]
Full = Annotated[bool, option("--full", help="Interpret every workgroup on real data: slow, follows anything.")]
Seed = Annotated[int, option("--seed", help="Seed of the inputs and of the workgroups that are checked.")]


def capture(
    kernel: File,
    sizes: Sizes = None,
    output: Annotated[
        Path | None, option("--output", "--out", "-o", help="Trace file to write, by default FILE.trace.npz here.")
    ] = None,
    full: Full = False,
    line_bytes: Annotated[int, option("--line-bytes", help="Cache line of the trace, in bytes.", hidden=True)] = 128,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Capture what every workgroup of a Triton kernel touches, with no GPU; other commands take the trace file."""
    from swizzle_sim.capture.trace_file import write_trace

    output = output or Path(f"{Path(kernel.partition(':')[0]).stem}.trace.npz")
    if output.suffix != ".npz":
        raise CaptureError(f"{output}: a trace file ends in .npz, such as {output.stem}.trace.npz", code="trace-file")
    if not output.parent.is_dir():
        raise CaptureError(f"{output}: there is no folder {output.parent}", code="trace-file")
    check_folder(output.parent)
    began = time.monotonic()
    print("capturing ...", file=sys.stderr, flush=True)
    with capturing() as progress:
        how: dict[str, Any] = {"full": full, "line_bytes": line_bytes, "seed": seed}
        trace, manifest = _captured(kernel, parse_sizes(sizes), **how, on_progress=progress)
    write_trace(output, trace, manifest)
    document = {
        "kernel": manifest["facts"]["name"],
        "problem": manifest["facts"]["problem"],
        "trace": str(output),
        "bytes": output.stat().st_size,
        "triton": manifest["triton"],
        "how": manifest["how"],
        "workgroups": trace.n_workgroups,
        "programs": manifest["facts"]["programs"],
        "instructions": trace.n_instructions,
        "line_touches": trace.n_touches,
        "paths": manifest["paths"],
        "checked_workgroups": manifest["checked_workgroups"],
        "seconds": round(time.monotonic() - began, 2),
        "resources": manifest["resources"],
    }
    if json:
        print_json(document)
        return
    programs = document["programs"]
    tiles = f"tiles of {programs} programs" if programs else "workgroups"
    title = f"{document['kernel']} {sizes_text(document['problem'])}"
    line(
        f"{title}: {trace.n_workgroups} {tiles}, {trace.n_touches:,} line touches in "
        f"{trace.n_instructions:,} tensor instructions"
    )
    line(_how(document))
    if manifest["launch"].get("config"):
        line(f"autotuner's configuration {_config(manifest['launch'])}")
    line(f"written: {output} ({document['bytes'] / 1e6:.1f} MB, {document['seconds']:.1f} s)")
    print(f"next: swizzle-sim optimize {output}")


def _how(document: dict[str, Any]) -> str:
    if document["how"] == "interpreted":
        return f"every workgroup interpreted in Triton {document['triton']}"
    paths, checked = document["paths"], len(document["checked_workgroups"])
    if not document["triton"]:
        return f"{document['how']}, {checked} of them as far from a neighbour as all neighbours are"
    return (
        f"{paths} control-flow path{'s' if paths > 1 else ''} followed; {checked} workgroups interpreted for "
        f"comparison in Triton {document['triton']}, and equal line by line"
    )


def _config(launch: dict[str, Any]) -> str:
    """Configuration in words: its place, its constants, its options."""
    shown = {**launch["constexprs"], **launch.get("options", {})}
    shown |= {name: launch[name] for name in ("num_warps", "num_stages")}
    return f"{launch['config']}: {', '.join(f'{name}={value}' for name, value in shown.items() if value is not None)}"


def _captured(name: str, sizes: dict[str, int], **options: Any):
    from swizzle_sim.capture.capture import LINE_BYTES
    from swizzle_sim.capture.user_kernel import capture_file, capture_kernel, keep, request_of
    from swizzle_sim.workload.kernels import is_user_kernel, kernel

    if is_user_kernel(name):
        request = request_of(name, sizes)
        trace, manifest = capture_file(request, **options)
        if (options["full"], options["line_bytes"], options["seed"]) == (False, LINE_BYTES, 0):
            keep(request, trace, manifest)
        return trace, manifest
    return capture_kernel(kernel(name, **sizes), **options)


def init_kernel(
    function: Annotated[str, argument("FILE:FUNCTION", "A @triton.jit function in a Python file.")],
    output: Annotated[
        Path | None,
        option("--output", "--out", "-o", help="File to write; by default FUNCTION_kernel.py next to FILE."),
    ] = None,
    json: Json = False,
) -> None:
    """Write the Kernel(...) declaration of a Triton function, from its source."""
    from swizzle_sim.capture.init_kernel import write_declaration

    path, open_points = write_declaration(function, output)
    if json:
        print_json({"written": str(path), "to_complete": open_points})
        return
    line(f"written: {path}")
    if open_points:
        line("to complete (... in the file): " + ", ".join(open_points))
    first = "complete it" if open_points else "see each CHECK in it"
    print(f"next: {first}, then swizzle-sim optimize {path}")
