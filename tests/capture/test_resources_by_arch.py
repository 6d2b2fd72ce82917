"""Is a kernel that AMD's compiler refuses captured for the GPUs that take it, and refused at once for the others?"""

from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest

from swizzle_sim.capture.occupancy import ARCHS, NVIDIA, check_compiles, resources_by_arch, stored_resources
from swizzle_sim.workload.launch import Launch
from xcd_model import Resources
from xcd_model.errors import CompileError

FOUND = Resources(threads=256, vgprs=64, lds_bytes=0, instructions_in_flight=2, source="made up")
LAUNCH = {
    **{"path": "none.py", "function": "kernel", "arguments": {}, "constexprs": {}, "grid": [1]},
    **{"num_warps": 8, "num_stages": 2},
}


@pytest.fixture
def compiling(monkeypatch):
    """Architectures that a compile succeeds for, and those that were asked for."""
    able, asked = set(), []

    def compile_for(launch, archs):
        asked.extend(archs)
        return [SimpleNamespace(resources=FOUND) if arch in able else CompileError(f"not {arch}") for arch in archs]

    monkeypatch.setattr("swizzle_sim.capture.occupancy.compile_for", compile_for)
    return able, asked


@pytest.mark.parametrize(
    ("able", "arch", "says"),
    [
        ((), None, "not gfx942"),
        (("sm_90a",), None, ""),
        (("gfx950",), None, ""),
        (("gfx950",), "gfx942", ""),  # a tile may fit one and not the other: its score says so
        (("sm_90a",), "gfx942", "not gfx942"),
        (("sm_90a",), "sm_90a", ""),
        (("gfx942", "gfx950"), "sm_90a", "not sm_90a"),
    ],
)
def test_what_compiles_for_nobody_who_asks_is_refused_before_its_capture(compiling, able, arch, says):
    compiling[0].update(able)
    if not says:
        check_compiles(LAUNCH, arch)
        return
    with pytest.raises(CompileError, match=says):
        check_compiles(LAUNCH, arch)


def test_another_vendors_compiler_is_asked_only_by_nobody(compiling):
    compiling[0].update(ARCHS)
    check_compiles(LAUNCH, ARCHS[0])
    assert not set(compiling[1]) & set(NVIDIA)


def test_a_configuration_has_to_fit_a_cu_where_an_autotuner_would_find_out(monkeypatch):
    def compile_for(launch, archs):
        return [SimpleNamespace(resources=replace(FOUND, lds_bytes=launch)) for _ in archs]

    monkeypatch.setattr("swizzle_sim.capture.occupancy.compile_for", compile_for)
    check_compiles(64 << 10, "gfx942", fits=True)
    check_compiles(96 << 10, "gfx942")
    with pytest.raises(CompileError, match="no workgroup fits a CU of mi300x: short of LDS"):
        check_compiles(96 << 10, "gfx942", fits=True)
    check_compiles(96 << 10, "gfx950", fits=True)  # which has 160 KiB


@pytest.mark.parametrize("able", [("gfx942",), ("gfx950",), ("sm_90a",)])
def test_a_gpu_of_another_vendor_takes_what_amds_compiler_says_or_its_own(compiling, able):
    compiling[0].update(able)
    launch = Launch.from_dict(LAUNCH)
    manifest = {"facts": {"name": "kernel"}, "launch": LAUNCH, "resources": resources_by_arch(launch)}
    assert asdict(stored_resources(manifest, "sm_90a")) == asdict(FOUND)
    for arch in ARCHS:
        if arch not in able:
            with pytest.raises(CompileError, match=f"kernel does not compile for {arch}: not {arch}"):
                stored_resources(manifest, arch)


def test_a_kernel_that_compiles_for_nothing_has_no_resources(compiling):
    manifest = {"facts": {"name": "kernel"}, "launch": LAUNCH, "resources": {"gfx942": {"error": "not gfx942"}}}
    with pytest.raises(CompileError, match="kernel does not compile for sm_90a: not sm_90a"):
        stored_resources(manifest, "sm_90a")
