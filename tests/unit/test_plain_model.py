"""Is the speed machinery only that, and is the replacement policy one thing that can be exchanged?

Copies of the model are changed on disk and replayed as plain Python, in a process of their own.
"""

import json
import os
import shutil
import subprocess
import sys
from collections import OrderedDict
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests import naive, naive_timed, plain_replays
from xcd_model import prepare
from xcd_model.cache.packed import BY_TILE

ROOT = Path(__file__).parents[2]
FIFO = """
import numpy as np
from numba import njit
from xcd_model.cache.locate import HIT, MARKS, PARTLY, VALID

POLICY = "fifo"


@njit(inline="always")
def _touch(words, filler, row, ways, word, by):
    for way in range(row, row + ways):
        there = np.int64(words[way])
        if (there ^ word) <= MARKS:
            words[way] = np.uint32(word | there)
            found = np.int64(HIT if word & ~there & VALID == 0 else PARTLY)
            if filler is None:
                return found
            if found == PARTLY:
                filler[way] = by
                return found
            return found | (np.int64(filler[way]) << 32)
    victim = np.int64(words[row + ways - 1])
    for way in range(row + ways - 1, row, -1):
        words[way] = words[way - 1]
        if filler is not None:
            filler[way] = filler[way - 1]
    words[row] = np.uint32(word)
    if filler is not None:
        filler[row] = by
    return victim
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The model without its folder ``fast``."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "xcd_model", folder / "xcd_model", ignore=shutil.ignore_patterns("__pycache__", "fast"))
    return folder


# An editable install would find the missing folder in this checkout.
NOT_EDITABLE = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if '__editable__' not in str(f)]\n"


def run(folder, code):
    """What code prints as JSON that runs as plain Python on the model in a folder."""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-W", "ignore", "-c", NOT_EDITABLE + code]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_without_the_speed_machinery_every_count_and_time_is_the_same(copy):
    code = "import json; from tests.plain_replays import everything; print(json.dumps(everything()))"
    plain, quick = run(copy, code), plain_replays.everything()
    assert plain.keys() == quick.keys()
    for name, found in quick.items():
        assert plain[name] == found, name


def test_the_copy_is_what_runs_and_has_none_of_it(copy):
    code = (
        "import json, sys, xcd_model; from tests.plain_replays import GPUS, TRACES\n"
        "plan = xcd_model.prepare(TRACES['gemm'](), GPUS['plain sets']())\n"
        "fast = [name for name in sys.modules if name.startswith('xcd_model.fast')]\n"
        "print(json.dumps([xcd_model.__file__, fast, plan.simulated_fraction]))"
    )
    path, modules, fraction = run(copy, code)
    assert Path(path).is_relative_to(copy) and modules == [] and fraction == 1


def test_the_whole_model_uses_all_of_it():
    """Else the comparison would say nothing."""
    gemm = plain_replays.TRACES["gemm"]()
    assert prepare(gemm, plain_replays.GPUS["plain sets"]()).simulated_fraction < 1
    assert prepare(gemm, plain_replays.GPUS["sets by modulo"]()).machine.l1_mode == BY_TILE


class FifoCache(naive.LruCache):
    """The oracle's cache, first in first out: a hit moves nothing."""

    def touch(self, line, dirty=(), wanted=(0,)):
        lines = self.sets[naive.set_of(line, self.cache)]
        order = OrderedDict.fromkeys(lines)
        found = super().touch(line, dirty, wanted)
        for name in order:
            if name in lines:
                lines.move_to_end(name)
        if line not in order:
            lines.move_to_end(line)
        return found


GPU_NAMES = ("few sets", "plain sets", "more ways than a vector")
CASES = list(product(GPU_NAMES, plain_replays.TRACES))


@pytest.fixture(scope="module")
def by_fifo(copy, tmp_path_factory):
    """Lockstep and timed replay of each case, by a copy of the model with another policy."""
    folder = tmp_path_factory.mktemp("fifo")
    cache = shutil.copytree(copy / "xcd_model", folder / "xcd_model") / "cache"
    (cache / "fifo.py").write_text(FIFO)
    choice = cache / "replacement.py"
    choice.write_text(choice.read_text().replace("xcd_model.cache.lru import", "xcd_model.cache.fifo import"))
    code = (
        "import json; from tests.plain_replays import replays\n"
        f"found = [replays(gpu, trace) for gpu, trace in {CASES!r}]\n"
        "print(json.dumps([(one['lockstep'], one['timed']) for one in found]))"
    )
    return dict(zip(CASES, run(folder, code), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_another_policy_takes_the_place_of_lru(by_fifo, monkeypatch, case):
    lockstep, timed = by_fifo[case]
    name, trace_name = case
    trace, device = plain_replays.TRACES[trace_name](), plain_replays.GPUS[name]()
    order = np.random.default_rng(1).permutation(trace.n_workgroups)
    monkeypatch.setattr(naive, "LruCache", FifoCache)
    caches = [naive.Caches(device) for _ in range(2)]
    by_turn, by_tensor = naive.replay(trace, order, device, 2, caches=caches[0])
    assert lockstep["timeline"] == by_turn and lockstep["by_tensor"] == by_tensor
    expected = naive_timed.replay(trace, order, device, 2, **plain_replays.ISSUE, caches=caches[1])
    assert timed["time_fs"] == expected.time_fs
    assert timed["timeline"] == expected.table(timed["bin_fs"]).tolist()


def test_first_in_first_out_counts_something_else(monkeypatch):
    trace, device = plain_replays.TRACES["stencil"](), plain_replays.GPUS["few sets"]()
    order = np.random.default_rng(1).permutation(trace.n_workgroups)
    lru = naive.replay(trace, order, device, 2)
    monkeypatch.setattr(naive, "LruCache", FifoCache)
    assert naive.replay(trace, order, device, 2) != lru
