"""The documents of a bundle: its manifest, with the proof that no file was changed since, and ``result.json``."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FORMAT = 1  # raise when manifest or result change
MANIFEST = "manifest.json"
RESULT = "result.json"
RAW = "raw"
# how outputs compare where a candidate counts as right: equal, but for rounding, or of a kernel that itself leaves
# something else where its programs run in another order
RIGHT = ("bitwise", "tolerance", "races")
IMPORTED = (".py", ".pyc", ".so", ".pyd", ".pth")  # endings of what Python loads by name


class Refused(Exception):
    """The flow cannot go on; the message says why and what to do."""


def digest(data: Any) -> str:
    """SHA-256 of bytes or of a buffer, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def identity(manifest: Mapping[str, Any]) -> str:
    """Name of a bundle: a digest of its manifest without the name."""
    rest = {key: value for key, value in manifest.items() if key != "bundle"}
    return digest(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode())


def read_manifest(folder: Path) -> dict[str, Any]:
    """Manifest of a bundle, its own digest checked."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        found = identity(manifest)
        format_, name = manifest["format"], manifest["bundle"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{folder / MANIFEST}: no readable manifest ({type(error).__name__}: {error})") from None
    if format_ != FORMAT:
        raise Refused(f"{folder / MANIFEST}: bundle format {format_}, this program reads format {FORMAT}")
    if found != name:
        raise Refused(
            f"{folder / MANIFEST} was changed after the bundle was made: its digest is {found}, it says {name}"
        )
    return manifest


def check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse a bundle whose files are not those of its manifest."""
    for name, wanted in manifest["files"].items():
        path = folder / name
        found = digest(path.read_bytes()) if path.is_file() and not path.is_symlink() else None
        if found is None:
            raise Refused(f"{path} is missing: remake the bundle")
        if found != wanted:
            raise Refused(f"{path} was changed after the bundle was made: SHA-256 {found}, the manifest says {wanted}")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if str(name) not in manifest["files"] and name.parts[0] != RAW and _is_importable(path, name):
            raise Refused(f"{path} is not in the bundle's manifest, and Python could load it: delete it")


def _is_importable(path: Path, name: Path) -> bool:
    """Whether a file, or a linked folder, could be imported: what a queue, an editor or a crash leaves cannot."""
    named = all(part.isidentifier() for part in (*name.parts[:-1], name.name.split(".", maxsplit=1)[0]))
    return named and (path.suffix in IMPORTED or (path.is_symlink() and path.is_dir()))


def read_order(folder: Path, manifest: Mapping[str, Any], candidate: Mapping[str, Any]) -> array:
    """Tile of every workgroup, as the candidate's expected permutation says."""
    order = array("i")
    order.frombytes((folder / candidate["order"]).read_bytes())
    grid = manifest["launch"]["grid"]
    total = 1
    for side in manifest.get("remapped_grid") or grid:
        total *= side
    if sorted(order) != list(range(total)):
        raise Refused(f"{candidate['order']}: {candidate['name']} is no bijection of the {total} workgroups")
    return order


class Store:
    """A document on disk."""

    def __init__(self, path: Path, document: dict[str, Any]):
        self.path, self.document = path, document
        self.save()

    def save(self) -> None:
        """Write it to a temporary file and rename it."""
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(self.document, file, indent=1, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path)

    def candidate(self, name: str) -> dict[str, Any]:
        """Entry of one candidate, to be filled."""
        return self.document["candidates"].setdefault(name, {})


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """JSON documents of a file, one a line; a last line cut short is left out."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue
