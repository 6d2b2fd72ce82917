"""Is compiled code never older than its source?"""

import subprocess
import sys

import pytest

from xcd_model.compiled import numba_setup


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    (folder / "b.py").write_text("y = 2\n")
    return folder


def test_any_change_of_any_file_gives_another_folder(package):
    first = numba_setup.cache_folder(package)
    assert first == numba_setup.cache_folder(package)
    (package / "b.py").write_text("y = 3\n")
    second = numba_setup.cache_folder(package)
    assert second != first
    assert second.is_dir() and not first.exists()
    (package / "b.py").rename(package / "c.py")
    third = numba_setup.cache_folder(package)
    assert third not in (first, second)
    (package / "deeper" / "still").mkdir(parents=True)
    (package / "c.py").rename(package / "deeper" / "still" / "c.py")
    moved = numba_setup.cache_folder(package)
    assert moved not in (first, second, third)
    (package / "deeper" / "still" / "c.py").write_text("y = 4\n")
    assert numba_setup.cache_folder(package) != moved


def test_a_folder_that_cannot_be_written_leads_to_the_users_cache_then_to_a_new_one(package, tmp_path, monkeypatch):
    (package / "__pycache__").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert numba_setup.cache_folder(package).parent == tmp_path / "cache" / "swizzle-sim"
    (tmp_path / "blocked").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    monkeypatch.setattr(numba_setup.tempfile, "mkdtemp", lambda prefix: str(tmp_path / f"{prefix}new"))
    assert numba_setup.cache_folder(package) == tmp_path / "swizzle-sim-new"


@pytest.mark.parametrize("chosen", ["", "mine"])
def test_numba_uses_it_unless_told_otherwise(chosen, tmp_path):
    code = "import xcd_model.dispatch; from numba.core import config; print(config.CACHE_DIR)"
    where = str(tmp_path / chosen) if chosen else ""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": "/usr/bin", "NUMBA_CACHE_DIR": where}
    )
    assert done.stdout.strip() == (where or str(numba_setup.cache_folder()))
