"""Does what an H200 printed give its constants, refute plain index functions, and make a description that loads?"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from swizzle_sim.hardware import calibrate
from xcd_model import gpu
from xcd_model.errors import HardwareError
from xcd_model.spec.load import load_gpu

PRINTED = Path(__file__).with_name("data") / "h200" / "calibrate.csv"  # by one H200
GPU = gpu("h200")


@pytest.fixture(scope="module")
def lines():
    name, found = calibrate.read(PRINTED.read_text())
    assert name == "NVIDIA H200"
    return found


def test_constants_are_near_those_of_the_description(lines):
    off = {row["key"]: row["percent"] for row in calibrate.compared(calibrate.facts(lines, GPU), GPU)}
    assert len(off) == 9
    for key in ("clock_mhz", "l2.latency_ns", "hbm.latency_ns"):
        assert abs(off[key]) < 1, key
    for key in ("limits.workgroup_gap_ns", "l1.latency_ns", "hbm_rows.read_ps", "hbm_rows.write_ps"):
        assert abs(off[key]) < 6, key
    assert abs(off["hbm.bandwidth_gbps"]) < 8  # the copy is slower than PyTorch's


def test_the_l2_keeps_as_many_lines_at_every_stride(lines):
    """Half of the L2, 30 MiB, is 245,760 lines: 131,072 is the largest power of two."""
    assert calibrate.lines_kept(lines, GPU) == {128 << k: 131072 for k in range(8)}
    found = calibrate.indices(lines, GPU)
    assert found["as described"] == found["xor 1"] == 8
    assert found["modulo"] == 1  # at the stride of a line alone


def test_the_description_holds_what_was_measured_and_loads(lines, tmp_path):
    text = Path(str(calibrate.resources.files("xcd_model") / "spec" / "gpus" / "h200.toml")).read_text()
    made = calibrate.description(text, "NVIDIA H200", calibrate.facts(lines, GPU), GPU)
    (tmp_path / "mine.toml").write_text(made)
    device = load_gpu(tmp_path / "mine.toml")
    assert device.l2.latency_ns == 146.3 and device.facts["l2.latency_ns"].status == "measured"
    assert "147.0 before" in device.facts["l2.latency_ns"].source
    assert device.facts["dispatch_offset"] == GPU.facts["dispatch_offset"]  # documented


def test_what_a_description_inherits_is_written_too(tmp_path):
    """Five of the H100's eight stand in the file that it is based on."""
    device = gpu("h100")
    name, lines = calibrate.read((PRINTED.parents[1] / "h100" / "calibrate.csv").read_text())
    facts = calibrate.facts(lines, device)
    text = Path(str(calibrate.resources.files("xcd_model") / "spec" / "gpus" / "h100.toml")).read_text()
    (tmp_path / "mine.toml").write_text(calibrate.description(text, name, facts, device))
    written = load_gpu(tmp_path / "mine.toml")
    for one in facts:
        if device.facts[one.key].status != "documented":
            assert written.facts[one.key].value == one.value and written.facts[one.key].status == "measured", one.key
    changed = {one.key for one in facts}
    assert {k: f.value for k, f in written.facts.items() if k not in changed} == {
        k: f.value for k, f in device.facts.items() if k not in changed
    }


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "what,first,second,value,unit\nCUs,0,0,x,CUs\n"])
def test_what_the_program_did_not_print_is_refused(text):
    with pytest.raises(HardwareError, match="not what the program prints"):
        calibrate.read(text)


def test_without_a_compiler_the_error_names_both(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(HardwareError, match="neither nvcc nor hipcc"):
        calibrate.compile_program(tmp_path / "program")


@pytest.mark.packages
@pytest.mark.skipif(shutil.which("hipcc") is None, reason="needs Debian's hipcc and libamdhip64-dev")
def test_the_program_compiles_for_amd(tmp_path):
    """The newest architecture that Debian's hipcc knows; no MI300X has run it."""
    words = ["hipcc", "--offload-arch=gfx90a", "-O1", "-std=c++17", "-x", "hip", "-o", str(tmp_path / "program")]
    done = subprocess.run(
        [*words, str(calibrate.source())], capture_output=True, text=True, env={**os.environ, "HIP_PLATFORM": "amd"}
    )
    assert done.returncode == 0, done.stderr


def test_the_command_prints_what_it_measured(capsys, monkeypatch):
    from swizzle_sim.cli import main

    words = ["swizzle-sim", "lab", "calibrate", "--gpu", "h200", "--measured", str(PRINTED), "--json"]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    document = json.loads(capsys.readouterr().out)
    assert document["on"] == "NVIDIA H200" and document["strides"] == 8 and document["round_robin"] is None
