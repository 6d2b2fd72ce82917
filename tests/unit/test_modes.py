"""Do the partition and memory modes divide a chip as published, and are impossible ones refused?"""

from importlib import resources

import pytest

from xcd_model import gpu, gpu_modes, gpu_names
from xcd_model.errors import SpecError, UnknownName

MI300X_TEXT = (resources.files("xcd_model") / "spec" / "gpus" / "mi300x.toml").read_text(encoding="utf-8")
MODES = [(name, *pair) for name in gpu_names() for pair in gpu_modes(name)]


def test_the_modes_are_these():
    nps1 = [("SPX", "NPS1"), ("DPX", "NPS1"), ("QPX", "NPS1"), ("CPX", "NPS1")]
    assert set(gpu_modes("mi300x")) == set(gpu_modes("mi325x")) == {*nps1, ("QPX", "NPS4"), ("CPX", "NPS4")}
    assert set(gpu_modes("mi355x")) == {*nps1, ("DPX", "NPS2"), ("QPX", "NPS2"), ("CPX", "NPS2")}
    assert gpu_modes("mi300a") == (("SPX", "NPS1"), ("TPX", "NPS1"), ("CPX", "NPS1"))


@pytest.mark.parametrize(("name", "partition", "memory_mode"), MODES)
def test_the_devices_of_a_mode_add_up_to_the_chip(name, partition, memory_mode):
    chip, device = gpu(name), gpu(name, partition=partition, memory_mode=memory_mode)
    devices = {"SPX": 1, "DPX": 2, "TPX": 3, "QPX": 4, "CPX": chip.xcds}[partition]
    assert (device.xcds * devices, device.partition, device.memory_mode) == (chip.xcds, partition, memory_mode)
    assert device.hbm.size_bytes * devices == pytest.approx(chip.hbm.size_bytes)
    for dtype, peak in chip.peak_tflops.items():
        assert device.peak_tflops[dtype] * devices == pytest.approx(peak)
    domains = int(memory_mode.removeprefix("NPS"))
    for part in ("mall", "hbm") if chip.mall else ("hbm",):
        assert getattr(device, part).bandwidth_gbps * domains == pytest.approx(getattr(chip, part).bandwidth_gbps)
        assert getattr(device, part).latency_ns <= getattr(chip, part).latency_ns
    if chip.mall:
        assert device.mall.size_bytes * domains == chip.mall.size_bytes
    assert (device.l1, device.l2, device.limits) == (chip.l1, chip.l2, chip.limits)
    if chip.energy:
        assert device.energy.static_w.value * devices == pytest.approx(chip.energy.static_w.value)
    assert gpu(device.name) == device


def test_published_figures_of_nps4():
    chip, device = gpu("mi300x"), gpu("mi300x-cpx-nps4")
    assert (device.xcds, device.cus) == (1, 38)
    assert (device.mall.size_bytes, device.hbm.size_bytes) == (64 << 20, 24 << 30)  # AMD partitioning overview: 24 GB
    assert chip.mall.latency_ns / device.mall.latency_ns == pytest.approx(1.42)  # SC25, The MALL is Open
    assert chip.hbm.latency_ns / device.hbm.latency_ns == pytest.approx(1.31)
    assert device.facts["hbm.latency_ns"].status == "assumed"
    assert device.facts["l2.ways"] == chip.facts["l2.ways"]


def test_a_mode_is_named_in_the_name_or_beside_it():
    device = gpu("MI300X-CPX-NPS4")
    assert device.name == "mi300x-cpx-nps4"
    assert device == gpu("mi300x", partition="cpx", memory_mode="nps4") == gpu("mi300x-cpx", memory_mode="NPS4")
    assert gpu("mi300x-cpx").name == "mi300x-cpx"
    assert gpu("mi300x-spx-nps1") == gpu("mi300x")
    assert gpu_modes("mi300x-cpx") == gpu_modes("mi300x")


@pytest.mark.parametrize(
    ("name", "mode", "message"),
    [
        ("mi300x-nps4", {}, "mi300x cannot be SPX/NPS4; NPS4 needs QPX or CPX; legal: SPX/NPS1, DPX/NPS1"),
        ("mi300x", {"partition": "TPX"}, "mi300x cannot be TPX/NPS1; legal: SPX/NPS1"),
        ("mi300a", {"partition": "CPX", "memory_mode": "NPS4"}, "legal: SPX/NPS1, TPX/NPS1, CPX/NPS1"),
        ("mi300x", {"partition": "half"}, "mi300x cannot be HALF/NPS1; legal: SPX/NPS1"),
        ("mi300x-cpx", {"partition": "DPX"}, "partition = 'DPX' contradicts the name 'mi300x-cpx'"),
    ],
)
def test_modes_that_do_not_go_together_are_refused(name, mode, message):
    with pytest.raises(SpecError, match=message):
        gpu(name, **mode)


@pytest.mark.parametrize("name", ["mi300x-cpxx", "mi300x-cpx-dpx", "mi300x-", "mi300y-cpx"])
def test_names_of_no_mode_are_unknown(name):
    with pytest.raises(UnknownName, match="mi300x"):
        gpu(name)


def test_a_file_may_have_modes_or_none(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(MI300X_TEXT, encoding="utf-8")
    assert gpu(str(path), partition="CPX") == gpu("mi300x-cpx")
    path.write_text(MI300X_TEXT[: MI300X_TEXT.index("[partitions]")], encoding="utf-8")
    assert gpu_modes(str(path)) == (("SPX", "NPS1"),)
    with pytest.raises(SpecError, match="legal: SPX/NPS1"):
        gpu(str(path), partition="CPX")
    path.write_text(MI300X_TEXT.replace('partition = "SPX"', 'partition = "DPX"'), encoding="utf-8")
    with pytest.raises(SpecError, match="is described as DPX/NPS1"):
        gpu(str(path), partition="CPX")
