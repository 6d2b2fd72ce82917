"""Run every notebook from its first cell to its last, and store what it shows.

python -m swizzle_benchmarks.evidence.docs.notebooks            # all of them; or name some: ... 02 05
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parents[3] / "notebooks"
CELL_TIMEOUT_S = 300
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebooks(words: Sequence[str] = ()) -> list[Path]:
    """Stored notebooks in reading order; with ``words`` those whose names begin with one of them."""
    return [path for path in sorted(FOLDER.glob("*.ipynb")) if path.name.startswith(tuple(words) or "")]


def read(path: Path) -> NotebookNode:
    """A notebook as it is stored."""
    return nbformat.read(path, as_version=4)


def executed(notebook: NotebookNode) -> NotebookNode:
    """A notebook after a run in a fresh Python process and an empty folder.

    The process is this Python, whatever kernels the user has installed, without the user's IPython profile.
    """
    fresh = nbformat.from_dict(notebook)
    with tempfile.TemporaryDirectory(prefix="notebook-") as folder:
        work, profile = Path(folder, "work"), Path(folder, "ipython")
        work.mkdir()
        manager = AsyncKernelManager(
            kernel_spec_manager=KernelSpecManager(kernel_dirs=[]),
            connection_file=str(Path(folder, "kernel.json")),
            transport="ipc" if os.name == "posix" else "tcp",
        )
        client = NotebookClient(
            fresh,
            km=manager,
            timeout=CELL_TIMEOUT_S,
            record_timing=False,
            shutdown_kernel="immediate",
            resources={"metadata": {"path": str(work)}},
        )
        environment = {**os.environ, "IPYTHONDIR": str(profile), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        client.execute(cleanup_kc=True, env=environment)
    return tidied(fresh)


def tidied(notebook: NotebookNode) -> NotebookNode:
    """Without what differs from machine to machine: versions, cell metadata, the pieces that a stream came in."""
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = NotebookNode(tags=cell.metadata["tags"]) if cell.metadata.get("tags") else NotebookNode()
        if cell.cell_type == "code":
            cell.outputs = list(_joined(cell.outputs))
    return notebook


def _joined(outputs: Sequence[NotebookNode]) -> Iterator[NotebookNode]:
    last: NotebookNode | None = None
    for output in outputs:
        if last is not None and output.output_type == last.output_type == "stream" and output.name == last.name:
            last.text += output.text
            continue
        last = output
        yield output


def shown(notebook: NotebookNode) -> list[tuple[str, str]]:
    """Text that each cell shows, as (source, text): streams, tables and computed prose, no pictures."""
    return [(cell.source, "\n".join(_texts(cell.outputs))) for cell in notebook.cells if cell.cell_type == "code"]


def _texts(outputs: Sequence[NotebookNode]) -> Iterator[str]:
    for output in outputs:
        if output.output_type == "stream":
            yield output.text.strip()
        data: dict[str, Any] = output.get("data", {})
        yield from (str(data[kind]) for kind in ("text/plain", "text/html", "text/markdown") if kind in data)


def complaints(notebook: NotebookNode) -> list[str]:
    """What cells wrote to stderr: warnings, in a notebook that should have none."""
    streams = (out for cell in notebook.cells for out in cell.get("outputs", ()) if out.output_type == "stream")
    return [out.text for out in streams if out.name == "stderr"]


def main(words: Sequence[str] = ()) -> None:
    """Execute notebooks and store them with their outputs."""
    for path in notebooks(words):
        found = executed(read(path))
        if warned := complaints(found):
            raise SystemExit(f"{path.name} warns, so it is not stored: {warned[0]}")
        text = nbformat.writes(found)
        path.write_text(re.sub(r"\n*\Z", "\n", text), encoding="utf-8")
        print("written:", f"notebooks/{path.name}", f"({len(text) // 1024} KB)")


if __name__ == "__main__":
    main(sys.argv[1:])
