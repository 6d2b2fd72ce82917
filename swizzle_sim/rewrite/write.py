"""Writes a rewritten kernel: whole or not at all, and never over the original."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from swizzle_sim.rewrite.kernel import Rewritten
from xcd_model.errors import RewriteError


def check_target(rewritten: Rewritten, out: Path) -> None:
    """Refuse a place that the rewritten kernel cannot be written to.

    Raises
    ------
    RewriteError
        If it is the original, a folder, or in no folder.
    """
    if out.exists() and out.resolve() == rewritten.path.resolve():
        raise RewriteError("is the kernel itself: write the rewritten one to another file", path=out)
    if out.is_dir():
        raise RewriteError("is a folder: name a file in it", path=out)
    if not out.absolute().parent.is_dir():
        raise RewriteError(f"cannot be written: there is no folder {out.parent}", path=out)


def write_rewritten(rewritten: Rewritten, out: Path) -> None:
    """Put the text into a file beside ``out`` and move it there in one step.

    Raises
    ------
    RewriteError
        If it cannot be written there.
    """
    check_target(rewritten, out)
    draft = None
    try:
        with tempfile.NamedTemporaryFile(dir=out.absolute().parent, prefix=f".{out.name}.", delete=False) as file:
            draft = Path(file.name)
            file.write(rewritten.text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        draft.chmod(0o666 & ~mask)
        draft.replace(out)
    except OSError as error:
        if draft is not None:
            draft.unlink(missing_ok=True)
        raise RewriteError(f"cannot be written ({error.strerror})", path=out) from None
