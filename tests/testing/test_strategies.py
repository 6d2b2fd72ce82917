"""Do the strategies give what they say, shrink to what is smallest, and say what is missing without hypothesis?"""

import re
import sys

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

import swizzle_sim.testing
from swizzle_sim.language import Grid, Swizzle, holds
from swizzle_sim.testing import MissingExtra, gpus, grids, swizzles
from xcd_model import Gpu, gpu, gpu_names
from xcd_model.errors import OptionError

PATIENT = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
QUICK = settings(max_examples=200, database=None, deadline=None)
SHAPES = {"line": (1, None), "tiles": (1, 2), "plane": (2, None), "box": (3, None)}


@pytest.mark.parametrize("kind", SHAPES)
def test_grids_have_the_kind_asked_for_and_shrink_to_one_workgroup(kind):
    @given(grids(kind, max_workgroups=90))
    @PATIENT
    def check(grid):
        assert isinstance(grid, Grid)
        assert (len(grid.launch), grid.tiles and len(grid.tiles)) == SHAPES[kind]
        assert grid.num_pids <= 90

    check()
    assert find(grids(kind), lambda grid: True, settings=QUICK).num_pids == 1
    assert find(grids(kind), lambda grid: grid.num_pids >= 13, settings=QUICK).num_pids in (13, 14, 15)


def test_every_kind_is_drawn():
    for kind, (axes, tiles) in SHAPES.items():
        found = find(
            grids(), lambda g, a=axes, t=tiles: (len(g.launch), g.tiles and len(g.tiles)) == (a, t), settings=QUICK
        )
        assert found.num_pids == 1, kind


@given(gpus())
@PATIENT
def test_gpus_are_gpus(one):
    assert isinstance(one, Gpu)
    assert one.dispatch_offset < one.xcds
    assert one.l2.sets >= 1


def test_gpus_shrink_to_the_mi300x_as_shipped():
    assert find(gpus(), lambda one: True, settings=QUICK) == gpu("mi300x")
    varied = find(gpus(), lambda one: one.xcds == 5, settings=settings(QUICK, max_examples=5000, derandomize=True))
    assert (varied.name, varied.cus_per_xcd, varied.dispatch_offset) == ("mi300x-varied", 1, 0)
    assert varied.l2 == gpu("mi300x").l2
    assert find(gpus("h200", vary=False), lambda one: True, settings=QUICK) == gpu("h200")


@pytest.mark.parametrize("name", gpu_names())
def test_every_gpu_can_be_varied(name):
    whole = gpu(name).l2.size_bytes
    assert find(gpus(name), lambda one: one.l2.size_bytes < whole, settings=QUICK).l2.ways == gpu(name).l2.ways - 1


@pytest.mark.parametrize("kind", SHAPES)
def test_swizzles_run_on_grids_of_their_kind(kind):
    @given(swizzles(kind, always=False), grids(kind, max_workgroups=60), st.integers(1, 9))
    @PATIENT
    def check(swizzle, grid, num_xcds):
        verdict = swizzle.verify(grid, num_xcds, lattice=[])
        assert verdict.bijective == holds(swizzle.name, grid, num_xcds)

    check()
    assert find(swizzles(kind), lambda one: True, settings=QUICK).name == "identity"
    assert isinstance(find(swizzles(kind), lambda one: True, settings=QUICK), Swizzle)


def test_compositions_are_drawn():
    found = find(swizzles("tiles"), lambda one: "+" in one.name and "size" in one.name, settings=QUICK)
    assert found.name.count("+") == 1
    assert set(re.findall(r"(\w+)=(\d+)", found.name)) <= {("size", "1"), ("walk", "1")}  # the smallest of each


@pytest.mark.parametrize("call", [lambda: grids("cube"), lambda: grids(max_workgroups=0), lambda: swizzles("cube")])
def test_what_there_is_not_is_refused(call):
    with pytest.raises(OptionError):
        call()


def test_without_hypothesis_the_extra_is_named(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "hypothesis"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "swizzle_sim.testing.strategies")
    for name in ("grids", "gpus", "swizzles"):
        monkeypatch.delitem(vars(swizzle_sim.testing), name, raising=False)
        with pytest.raises(MissingExtra, match=r"pip install -e '\.\[testing\]' in the checkout"):
            getattr(swizzle_sim.testing, name)
    with pytest.raises(ImportError):
        from swizzle_sim.testing import grids as _  # noqa: F401
    swizzle_sim.testing.assert_bijective("contiguous", grids=[64])


def test_the_public_names_are_these():
    assert swizzle_sim.testing.__all__ == sorted(swizzle_sim.testing.__all__)
    for name in swizzle_sim.testing.__all__:
        assert getattr(swizzle_sim.testing, name).__doc__, name
