"""``explore``: the page on which a swizzle is typed and its verdict, map and score are seen at once."""

from __future__ import annotations

import importlib.util
import os
import sys
from dataclasses import replace
from typing import Annotated

from swizzle_sim.base.release import install_hint
from swizzle_sim.cli.arguments import GpuName, Sizes, argument, known_kernels, load_swizzle, option, parse_sizes
from xcd_model.errors import SwizzleSimError

Kernel = Annotated[
    str,
    argument("KERNEL", "Kernel to begin with: of `swizzle-sim kernels`, my_kernel.py, or my.trace.npz.", known_kernels),
]
Host = Annotated[str, option("--host", help="Address to serve on; only this machine reaches the default.")]
Port = Annotated[
    int | None, option("--port", min=0, max=65535, help="Port; 0 for any; by default 8765, or the next free one")
]


def explore(
    kernel: Kernel = "gemm",
    sizes: Sizes = None,
    gpu: GpuName = "mi300x",
    swizzle: Annotated[str, option("--swizzle", metavar="FAMILY|TEXT|FILE", help="Swizzle to begin with.")] = "",
    host: Host = "127.0.0.1",
    port: Port = None,
    browser: Annotated[bool, option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Serve a local page: type a swizzle, pick kernel, sizes and GPU, and see verdict, map, score and bound change."""
    import webbrowser

    if importlib.util.find_spec("dash") is None:
        raise SwizzleSimError(f"the page needs Dash, which is not installed: {install_hint('explore')}")
    from swizzle_sim.explore.app import Server
    from swizzle_sim.explore.guard import is_loopback

    query = _query(kernel, sizes, gpu, swizzle)
    try:
        server = Server(host=host, port=port)
    except OSError as error:
        where = host if port is None else f"{host}, port {port}"
        raise SwizzleSimError(f"{where}: cannot be served on ({error.strerror})") from None
    if not is_loopback(host):
        print(
            f"swizzle-sim: warning: serving on {host}: whoever reaches this machine can use the page and its processor",
            file=sys.stderr,
        )
    address = f"{server.address}?{query}"
    # without a window, some browsers open in the terminal and take it
    windows = sys.platform in ("darwin", "win32") or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))

    def started() -> None:
        print(f"{address}\nCtrl-C ends it.", flush=True)
        if browser and windows:
            webbrowser.open(address)

    server.run(started=started)


def _query(name: str, words: list[str] | None, chip: str, swizzle: str) -> str:
    """Address of what was typed, refused here rather than on the page if it cannot be."""
    from swizzle_sim.explore.offered import serve, start_sizes
    from swizzle_sim.explore.state import State
    from swizzle_sim.language import is_spec
    from swizzle_sim.workload.kernels import is_user_kernel

    name = serve("kernel", name) if is_user_kernel(name) else name
    chip = serve("gpu", chip) if chip.endswith(".toml") else chip
    sizes = parse_sizes(words) or start_sizes(name)
    state = State(kernel=name, sizes=tuple(sizes.items()), gpu=chip)
    if swizzle:
        found = load_swizzle(swizzle)
        text = swizzle if is_spec(swizzle) and found.name == swizzle else found.source
        state = replace(state, swizzle=text)
    state.load_kernel()
    state.load_gpu()
    return state.query()
