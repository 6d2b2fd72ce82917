"""Is the speed machinery only that? A copy of the model without it is replayed as plain Python, in its own process."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import plain_replays
from xcd_model import prepare
from xcd_model.cache.packed import BY_TILE

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path):
    """The model without its folder ``fast``."""
    ignored = shutil.ignore_patterns("__pycache__", "fast")
    shutil.copytree(ROOT / "xcd_model", tmp_path / "xcd_model", ignore=ignored)
    return tmp_path


# An editable install would find the missing folder in this checkout.
NOT_EDITABLE = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if '__editable__' not in str(f)]\n"


def run(folder, code):
    """What code prints as JSON that runs as plain Python on the model in a folder."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-W", "ignore", "-c", NOT_EDITABLE + code]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_without_the_speed_machinery_every_count_and_time_is_the_same(copy):
    code = (
        "import json, sys, xcd_model; from tests.plain_replays import everything; found = everything()\n"
        "fast = [name for name in sys.modules if name.startswith('xcd_model.fast')]\n"
        "print(json.dumps([xcd_model.__file__, fast, found]))"
    )
    (path, modules, plain), quick = run(copy, code), plain_replays.everything()
    assert Path(path).is_relative_to(copy) and modules == []
    assert plain.keys() == quick.keys()
    for name, found in quick.items():
        assert plain[name] == found, name


def test_the_whole_model_uses_all_of_it():
    """Else the comparison would say nothing."""
    gemm = plain_replays.TRACES["gemm"]()
    assert prepare(gemm, plain_replays.GPUS["plain sets"]()).simulated_fraction < 1
    assert prepare(gemm, plain_replays.GPUS["sets by modulo"]()).machine.l1_mode == BY_TILE
