"""Notebooks as pages of the site: cells and stored outputs as Markdown. Nothing is run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).resolve().parents[3] / "notebooks"


def notebook_pages(folder: Path = NOTEBOOKS) -> dict[str, str]:
    """Markdown of every notebook of a folder, by the page's path below ``docs``."""
    found = sorted(folder.glob("*.ipynb"))
    return {f"notebooks/{path.stem}.md": as_markdown(json.loads(path.read_text(encoding="utf-8"))) for path in found}


def as_markdown(notebook: Mapping[str, Any]) -> str:
    """Text of one notebook."""
    parts: list[str] = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"]).strip("\n")
        if cell["cell_type"] == "markdown":
            parts.append(_linked(text))
        elif cell["cell_type"] == "code" and text:
            parts.append(_fenced(text, "python"))
            parts += [shown for output in cell["outputs"] if (shown := _output(output))]
    return "\n\n".join(parts) + "\n"


def _output(output: Mapping[str, Any]) -> str:
    """One output in the richest form there is."""
    if output["output_type"] == "stream":
        return _fenced("".join(output["text"]).rstrip("\n"), "text")
    data = {kind: "".join(value) for kind, value in output.get("data", {}).items()}
    if "image/png" in data:
        alt = " ".join(data.get("text/plain", "picture").strip("<>").replace('"', "").split())
        image = "".join(data["image/png"].split())
        return f'<div class="output"><img alt="{_escaped(alt)}" src="data:image/png;base64,{image}"></div>'
    if "text/html" in data:
        return f'<div class="output">{" ".join(data["text/html"].split())}</div>'
    if "text/markdown" in data:
        return _linked(data["text/markdown"])
    return _fenced(data.get("text/plain", ""), "text")


def _fenced(text: str, language: str) -> str:
    marks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{marks}{language}\n{text}\n{marks}"


def _linked(text: str) -> str:
    """Text whose links lead to pages of the site: to other notebooks, and into ``docs``."""
    text = re.sub(r"\]\((\w+)\.ipynb\)", r"](\1.md)", text)
    return text.replace("](../docs/", "](../")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
