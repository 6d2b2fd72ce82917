"""Programs that a test puts in the place of those on the PATH."""

import os

import pytest


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Write shell scripts by name, in front of everything else on the PATH."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")

    def write(**texts):
        for name, text in texts.items():
            (place / name).write_text(text)
            (place / name).chmod(0o755)

    return write
