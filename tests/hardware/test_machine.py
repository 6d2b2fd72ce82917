"""Is the node's machine told right, and is what hangs really killed?"""

import os
import sys

import pytest

from swizzle_sim.hardware import doctor
from swizzle_sim.hardware.bundle import device_of
from swizzle_sim.hardware.node.counted_launch import CountedLaunch, chosen
from swizzle_sim.hardware.node.counting import find_program, summary
from swizzle_sim.hardware.node.formulas import formulas_of
from swizzle_sim.hardware.node.machine import amd_topology, check_compiler, check_machine, in_the_way
from swizzle_sim.hardware.node.manifest import Refused
from swizzle_sim.hardware.node.processes import run
from swizzle_sim.hardware.node.rocprofv3 import Rocprofv3
from xcd_model import gpu
from xcd_model.errors import HardwareError

MI300X = device_of(gpu("mi300x"))
HERE = {"name": "AMD Instinct MI300X", "arch": "gfx942", "compute_units": 304}


@pytest.fixture
def sysfs(tmp_path):
    """A tree like that of the kernel driver."""

    def make(partition="SPX", xcds=8, simds=1216, devices=1):
        nodes = tmp_path / "class/kfd/kfd/topology/nodes"
        for number in range(devices + 1):
            (nodes / str(number)).mkdir(parents=True)
            values = f"simd_count {simds if number else 0}\nsimd_per_cu 4\nnum_xcc {xcds}\ngfx_target_version 90402\n"
            (nodes / str(number) / "properties").write_text(values)
            device = tmp_path / f"class/drm/card{number}/device"
            device.mkdir(parents=True)
            if number:
                (device / "current_compute_partition").write_text(f"{partition}\n")
                (device / "current_memory_partition").write_text("NPS1\n")
        return tmp_path

    return make


def test_topology(sysfs, tmp_path):
    found = amd_topology(sysfs(devices=2))
    assert found == {"devices": 2, "xcds": 8, "compute_units": 304, "partition": "SPX", "memory_mode": "NPS1"}
    assert check_machine(MI300X, {**HERE, **found}) == []
    assert amd_topology(tmp_path / "nothing") == {"devices": 0}
    (note,) = check_machine(MI300X, {**HERE, **found, "name": "AMD Radeon Graphics"})  # which says nothing
    assert "taken for AMD Instinct MI300X" in note
    (tmp_path / "class/drm/card2/device/current_compute_partition").write_text("DPX\n")
    differ = amd_topology(tmp_path)
    assert "partition" not in differ and differ["partition_differ"] == ["DPX", "SPX"]


def test_prices_of_another_compiler_are_warned_of():
    (note,) = check_compiler("3.9.0", "3.6.0")
    assert note.startswith("warning") and "Triton 3.9.0" in note and "compiles with 3.6.0" in note
    assert check_compiler("3.6.0", "3.6.0+rocm7.0") == check_compiler(None, "3.6.0") == []


def test_cpx_has_nothing_to_swizzle(sysfs):
    found = amd_topology(sysfs("CPX", xcds=1, simds=152, devices=8))
    with pytest.raises(Refused, match=r"CPX mode.*nothing to swizzle.*amd-smi set --compute-partition SPX"):
        check_machine(MI300X, {**HERE, **found, "compute_units": 38})
    with pytest.raises(HardwareError, match="nothing to swizzle"):
        device_of(gpu("mi300x-cpx"))


def test_another_partition_mode(sysfs):
    found = amd_topology(sysfs("DPX", xcds=4, simds=608, devices=2))
    with pytest.raises(Refused, match="4 XCDs here"):
        check_machine(MI300X, {**HERE, **found})


def test_doctor_on_a_node_and_on_a_laptop(sysfs, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    laptop = {name: (state, said) for name, state, said in doctor.checks(tmp_path / "no", tmp_path / "no")}
    assert laptop["GPU"][0] == "off" and "swizzle-sim bundle" in laptop["GPU"][1]
    node = {name: (state, said) for name, state, said in doctor.checks(sysfs("CPX", 1, 152, 8), tmp_path / "no")}
    assert node["partition mode"][0] == "off" and "amd-smi set" in node["partition mode"][1]
    assert node["rocprofv3"][0] == "missing" and "rocprofiler-sdk" in node["rocprofv3"][1]
    assert node["ROCm"][0] == "missing"


def test_a_hung_process_is_killed_with_its_group(tmp_path):
    pipe = tmp_path / "pipe"  # it ends when nobody is left who could write
    os.mkfifo(pipe)
    grandchild = "import time; time.sleep(60); print('alive', flush=True); time.sleep(600)"
    child = (
        f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', {grandchild!r}], "
        f"stdout=open({str(pipe)!r}, 'w')); time.sleep(600)"
    )
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as end:
        ended = run([sys.executable, "-c", child], log=tmp_path / "log", limit_s=1)
        os.set_blocking(end.fileno(), True)
        assert end.readline() == ""
    assert ended.state == "hung" and ended.code != 0 and ended.seconds < 300


def test_one_that_does_not_heed_the_polite_signal(tmp_path, monkeypatch):
    monkeypatch.setattr("swizzle_sim.hardware.node.processes.GRACE_S", 0.5)
    deaf = ["sh", "-c", "trap '' TERM; echo on; sleep 600"]  # a shell: deaf in some milliseconds
    ended = run(deaf, log=tmp_path / "log", limit_s=1)
    assert (ended.state, ended.code, ended.tail) == ("hung", -9, "on")


def test_other_ends(tmp_path):
    assert run(["no-such-program"], log=tmp_path / "log", limit_s=1).state == "missing"
    failed = run([sys.executable, "-c", "import sys; sys.exit('why')"], log=tmp_path / "log", limit_s=30)
    assert (failed.state, failed.code, failed.tail) == ("failed", 1, "why")


def test_no_shell_sees_a_name(tmp_path):
    words = ["; touch pwned", "$(touch pwned)", "`touch pwned`"]
    ended = run(
        [sys.executable, "-c", "import sys; print(sys.argv[1:])", *words],
        log=tmp_path / "log",
        limit_s=30,
        cwd=tmp_path,
    )
    assert ended.tail == str(words) and not (tmp_path / "pwned").exists()


OURS = ("gemm", "gemm_0d1d2d", "gemm_0d1d2d.kd", "gemm.kd", "gemm_0123", "gemm_BLOCK_M_128_EVEN_K_1")
OTHERS = ("gemm2", "my_gemm", "gemm_splitk", "Cijk_gemm", "void gemm<float>()", "gemmx.kd")


@pytest.mark.parametrize("name", [*OURS, *OTHERS])
def test_compiled_names_of_a_kernel(name):
    assert bool(chosen([CountedLaunch(1, name)], "gemm")) == (name in OURS)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950"])
def test_passes_and_fallbacks(arch):
    profiler = Rocprofv3()
    passes = profiler.passes(arch)
    assert {name for one in formulas_of(arch) for name in one.terms} <= {name for group in passes for name in group}
    for group in passes:
        assert sum(one.startswith("TCC_") for one in group) <= 4
        smaller = profiler.fallbacks(group)
        assert sorted(one for part in smaller for one in part) == (sorted(group) if len(group) > 1 else [])
        assert all(len(part) < len(group) for part in smaller)
    assert profiler.fallbacks(passes[0])[0] == ("TCC_HIT_sum", "TCC_MISS_sum")


def test_what_may_keep_a_profiler_from_counting(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    program = tmp_path / "rocm" / "bin" / "rocprofv3"
    (tmp_path / "rocm" / ".info").mkdir(parents=True)
    (tmp_path / "rocm" / ".info" / "version").write_text("6.2.4-120")
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/perf_event_paranoid").write_text("4")
    (tmp_path / "sys/class/kfd/kfd/proc/4242").mkdir(parents=True)
    found = {"versions": {"hip": "7.0.51831"}, "partition": "DPX", "memory_mode": "NPS4"}
    said = " / ".join(in_the_way(found, program, "", tmp_path))
    for words in ("PyTorch brings ROCm 7.0", "since ROCm 6.3", "perf_event_paranoid is 4", "DPX and NPS4", "pid 4242"):
        assert words in said
    assert in_the_way({"versions": {"hip": "6.2.41133"}, "rocm": ""}, tmp_path / "x" / "y", "", tmp_path / "none") == []


def test_the_profiler_that_comes_with_pytorch_goes_before_the_systems(tmp_path, monkeypatch):
    own, system, loaded = (tmp_path / name for name in ("site/_rocm_sdk_core/bin", "usr/bin", "rocm/bin"))
    monkeypatch.setenv("PATH", str(system))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    for folder in (loaded, system, own):
        folder.mkdir(parents=True)
        (folder / "rocprofv3").write_text("#!/bin/sh\n")
        (folder / "rocprofv3").chmod(0o755)
        monkeypatch.syspath_prepend(tmp_path / "site")
        assert find_program(Rocprofv3(), None) == str(folder / "rocprofv3")


def test_summary():
    assert summary([3.0]) == dict.fromkeys(("median", "lower_quartile", "upper_quartile", "lowest", "highest"), 3.0) | {
        "samples": 1
    }
    found = summary([5.0, 1.0, 2.0, 4.0, 3.0])
    assert (found["median"], found["lower_quartile"], found["upper_quartile"]) == (3.0, 2.0, 4.0)
