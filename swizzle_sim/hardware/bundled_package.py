"""The part of a package that its kernel needs, in the bundle: the node needs neither it nor what it imports."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from swizzle_sim.capture.process import run_worker
from swizzle_sim.hardware.node.manifest import PACKAGE
from swizzle_sim.launch import Launch
from xcd_model.errors import HardwareError

WORKER, TIMEOUT_S = "swizzle_sim.capture.sliced_text_worker", 120.0
LAUNCHED = "original.py"  # the part of ``kernel_original.py`` that is launched


def sliced_files(
    launch: Launch, files: Mapping[str, bytes], entries: Sequence[dict[str, Any]]
) -> tuple[str, dict[str, bytes]]:
    """Files of a bundle, those of its candidates cut down to what the kernel needs, with the files that they import.

    Parameters
    ----------
    launch : Launch
        Of a kernel whose file is not imported whole; of any other there is nothing to do.
    files : mapping of str to bytes
    entries : sequence of dict
        Of the manifest's candidates, the original first, whose file becomes `LAUNCHED`.

    Returns
    -------
    package : str
        Dotted name of the package that the kernel's file belongs to; empty for none.
    files : dict of str to bytes

    Raises
    ------
    HardwareError
        If a text does not run so far that the kernel is defined.
    """
    if not launch.sliced_for:
        return "", {}
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        places = []
        for entry in entries:
            place = Path(folder) / entry["file"]
            place.write_bytes(files[entry["file"]])
            places.append(str(place))
        request = {"texts": places, "path": str(launch.path), "function": launch.function, "arch": launch.sliced_for}
        reply = run_worker(WORKER, request, interpret=False, timeout_s=TIMEOUT_S)
    if "error" in reply:
        raise HardwareError(f"{launch.function}: no bundle without its package: {reply['error']}")
    entries[0]["file"] = LAUNCHED
    own = {entry["file"]: text for entry, text in zip(entries, reply["texts"], strict=True)}
    package = {f"{PACKAGE}/{name}": text for name, text in reply["package"].items()}
    return reply["dotted"], {name: text.encode() for name, text in (own | package).items()}
