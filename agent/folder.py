"""`FolderEndpoint`: a folder in place of a server. Each question is a file, and its answer a file beside it.

``--model folder/NAME --api-base FOLDER`` writes ``001-DIGEST.prompt.md`` and reads ``001-DIGEST.answer.md``: the fields
that the question ends with, each below its header ``[[ ## NAME ## ]]``, as a served model writes them. A picture that
goes with the question is ``001-DIGEST.prompt.png``, a second one ``001-DIGEST.prompt.2.png``. A question without an
answer ends the command with code ``waiting``: the study typed again goes on, or ``optimize --resume RUN``.
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from xcd_model.errors import RunError

from .endpoint import MAX_REPLY_CHARS, Answer

if TYPE_CHECKING:
    from dspy.lm15 import Request

CHARS_PER_TOKEN = 4  # by which tokens are counted where no server counts them
PICTURE = "(a picture goes with this question)"


class Waiting(RunError):
    """A question whose answer is not there yet."""


class FolderEndpoint:
    """One model that answers by file."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    def ask(self, request: Request) -> Answer:
        """Read the answer to a request; raises `Waiting` where there is none."""
        prompt = "\n\n".join(f"--- {role}\n\n{text}" for role, text in _said(request)) + "\n"
        digest = hashlib.sha256(prompt.encode()).hexdigest()[:12]
        self.folder.mkdir(parents=True, exist_ok=True)
        asked = next(iter(self.folder.glob(f"*-{digest}.prompt.md")), None)
        if asked is None:
            number = 1 + sum(1 for _ in self.folder.glob("*.prompt.md"))
            asked = self.folder / f"{number:03d}-{digest}.prompt.md"
            parts = [part for message in request.messages for part in message.parts]
            for i, png in enumerate((part.bytes for part in parts if part.type == "image"), 1):
                asked.with_suffix(".png" if i == 1 else f".{i}.png").write_bytes(png)
            asked.write_text(prompt, encoding="utf-8")
        answered = asked.with_name(asked.name.replace(".prompt.", ".answer."))
        if not answered.is_file():
            go_on = "lay it there, then type the study again, or optimize --resume RUN if optimize made the run"
            raise Waiting(f"{asked} waits for its answer in {answered.name}: {go_on}")
        text = answered.read_text(encoding="utf-8")[: MAX_REPLY_CHARS + 1]
        return Answer(text, "stop", False, len(prompt) // CHARS_PER_TOKEN, len(text) // CHARS_PER_TOKEN)


def _said(request: Request) -> list[tuple[str, str]]:
    """Role and text of each message of a request."""
    found = [("system", str(request.system))] if isinstance(getattr(request, "system", None), str) else []
    for message in request.messages:
        parts = [dataclasses.asdict(part) for part in message.parts]
        found.append((str(message.role), "\n".join(str(part.get("text") or PICTURE) for part in parts)))
    return found
