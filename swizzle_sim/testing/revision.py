"""Another revision of the checkout, in a folder of its own while it is read."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xcd_model.errors import RunError

# what the checked repository configures is not run for a look at it
_QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


@dataclass(frozen=True)
class Revision:
    """Files of a revision."""

    name: str  # as typed
    root: Path  # its folder
    checkout: Path  # folder of the checkout

    def at(self, path: Path) -> Path:
        """Where a file or folder of the checkout is in the revision."""
        full = Path(os.path.abspath(path))
        if not full.is_relative_to(self.checkout):
            raise RunError(f"{path} is outside of the checkout {self.checkout}, of which {self.name} is a revision")
        return self.root / full.relative_to(self.checkout)

    def is_of_checkout(self, file: Path) -> bool:
        """Whether a file is one of the working tree, not of the revision."""
        full = file.resolve()
        return full.is_relative_to(self.checkout.resolve()) and not full.is_relative_to(self.root)


@contextlib.contextmanager
def revision(name: str) -> Iterator[Revision]:
    """Check a revision out into a temporary folder, from which Python imports first while inside."""
    checkout = Path(os.path.abspath(_git("rev-parse", "--show-toplevel")))
    commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", what=name)
    with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:
        root = Path(folder).resolve() / "revision"
        _git("worktree", "add", "--detach", "--quiet", str(root), commit)
        try:
            with _imported_first(root):
                yield Revision(name, root, checkout)
        finally:
            _git("worktree", "remove", "--force", str(root))


@contextlib.contextmanager
def _imported_first(root: Path) -> Iterator[None]:
    """Have processes that are started here import packages of ``root`` and ``root/src`` before installed ones."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root), str(root / "src"), *filter(None, [before])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _git(*words: str, what: str = "") -> str:
    try:
        done = subprocess.run(["git", *_QUIET, *words], capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise RunError(f"git cannot be run ({error.strerror}): compare with a file of stored rates") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0] or "no such revision"
        raise RunError(f"{what or 'git ' + words[0]}: {said}; --against takes a revision of this checkout or a file")
    return done.stdout.strip()
