"""Are the shipped GPU descriptions sound, and are unsound ones refused by key, value and rule?"""

import copy
import dataclasses
import json
import pickle
import re
from importlib import resources

import pytest

from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.workload.kernels import kernel
from xcd_model import Gpu, gpu, gpu_modes, gpu_names, load_gpu
from xcd_model.errors import SpecError, UnknownName
from xcd_model.spec.facts import STATUSES, Fact
from xcd_model.spec.load import base_of, load_modes, shipped

SHIPPED = (*("b200", "gb10", "h100", "h200", "mi300a", "mi300x", "mi308x", "mi325x", "mi350x", "mi355x", "mi450"),)
MI300X_TEXT = (resources.files("xcd_model") / "spec" / "gpus" / "mi300x.toml").read_text(encoding="utf-8")

MODES = [(name, *pair) for name in SHIPPED for pair in gpu_modes(name)]


def fact_line(key, value, status="documented", source="a book"):
    return f'{key} = {{ value = {value}, status = "{status}", source = "{source}" }}'


def edited(key, line, section=None):
    """Text of the MI300X with the line of ``key`` (in ``section``) replaced; ``None`` takes it out."""
    out, here, found = [], None, False
    for old in MI300X_TEXT.splitlines():
        here = old.strip("[]") if old.startswith("[") else here
        hit = here == section and old.startswith(f"{key} = ")
        found |= hit
        out += [old] if not hit else [] if line is None else [line]
    assert found, (section, key)
    return "\n".join(out)


def load_text(tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_text(text, encoding="utf-8")
    return load_gpu(path)


@pytest.mark.parametrize("name", SHIPPED)
def test_every_fact_has_a_status_and_a_public_source(name):
    machine = gpu(name)
    assert machine.name == name
    for key, fact in {**machine.facts, **load_modes(shipped(name)).facts}.items():
        assert fact.status in STATUSES, key
        assert len(fact.source) >= 5, key
        assert not any(word in fact.source for word in ("/work", "/home", "/tmp", ".md")), key


def flat(values, prefix=""):
    """Dotted keys to plain values; a range stays in one piece."""
    out = {}
    for key, value in values.items():
        nested = isinstance(value, dict) and "low" not in value
        plain = list(value) if isinstance(value, tuple) else value
        out |= flat(value, f"{prefix}{key}.") if nested else {prefix + key: plain}
    return out


@pytest.mark.parametrize(("name", "partition", "memory_mode"), MODES)
def test_every_number_of_a_gpu_is_a_fact(name, partition, memory_mode):
    plain = gpu(name, partition=partition, memory_mode=memory_mode).as_dict()
    facts = plain.pop("facts")
    for key in ("name", "title", "arch", "partition", "memory_mode"):
        plain.pop(key)
    given = {key: value for key, value in flat(plain).items() if value is not None}
    known = {key: {k: fact[k] for k in ("low", "value", "high") if k in fact} for key, fact in facts.items()}
    assert given == {key: fact if "low" in fact else fact["value"] for key, fact in known.items()}


def test_names_in_any_case_and_paths(tmp_path):
    assert gpu("MI300X") == gpu("mi300x")
    path = tmp_path / "own.toml"
    path.write_text(MI300X_TEXT, encoding="utf-8")
    assert gpu(str(path)) == gpu("mi300x")


def test_a_gpu_is_frozen():
    machine = gpu("mi300x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        machine.xcds = 4
    with pytest.raises(TypeError):
        machine.peak_tflops["fp16"] = 1.0


RANGE = 'static_w = {{ value = {}, low = {}, high = {}, status = "assumed", source = "a book" }}'

# section, key, its value or its whole line (None: taken out), what the message must say
BAD = [
    ("l2", "ways", fact_line("wys", 16), "l2.wys is not a known key"),
    (None, "xcds", fact_line("xcd", 8), "xcd is not a known key"),
    (None, "xcds", fact_line("facts", 8), "facts is not a known key"),
    ("l2", "ways", None, "l2.ways is missing"),
    (None, "arch", None, 'arch is missing; add arch = "..."'),
    ("l2", "ways", -16, "l2.ways = -16 must be more than 0"),
    ("l2", "size_bytes", 4000000, "4_000_000 is not a whole .* 2048 B.; nearest sizes are 3_999_744 and 4_001"),
    ("l2", "ways", 65536, "l2.size_bytes = 4_194_304 .* nearest size is 8_388_608"),
    ("l2", "line_bytes", 96, "l2.line_bytes = 96 must be a power of two"),
    ("l2", "read_request_bytes", 96, "l2.read_request_bytes = 96 must divide"),
    ("l2", "channels", 3, "l2.channels = 3 must divide"),
    (
        "l2",
        "index",
        fact_line("index", '"prime"'),
        "l2.index = 'prime' is not known; accepted: modulo, channel-fold, xor",
    ),
    ("l2", "ways", fact_line("ways", '"16"'), "l2.ways = '16' must be a whole number"),
    ("l2", "ways", 16.0, "l2.ways = 16.0 must be a whole number"),
    ("l2", "ways", fact_line("ways", "true"), "l2.ways = True must be a whole number"),
    ("l2", "write_back", 1, "l2.write_back = 1 must be true or false"),
    ("hbm", "latency_ns", fact_line("latency_ns", "nan"), "hbm.latency_ns = nan must be a finite number"),
    ("hbm", "bandwidth_gbps", 9e3, "hbm.bandwidth_gbps = 9000.0 must be at most"),
    ("peak_tflops", "fp16", fact_line("half", 1.0), "peak_tflops key = 'half' is not known"),
    ("peak_tflops", "fp16", fact_line("fp16", '"fast"'), "peak_tflops.fp16 = 'fast' must be a finite"),
    ("l2", "ways", "ways = 16", r"l2.ways = 16 must be \{ value"),
    ("l2", "ways", 'ways = { value = 16, status = "assumed" }', r"l2.ways = .* must be \{ value"),
    ("l2", "ways", fact_line("ways", 16, source=" "), "l2.ways: source = ' ' must"),
    ("l2", "ways", fact_line("ways", 16, status="guessed"), "l2.ways: status = 'guessed' is not known"),
    (None, "partition", 'partition = "XPX"', "partition = 'XPX' is not known; accepted: SPX"),
    (None, "name", "name = 3", "name = 3 must be a string"),
    (None, "dispatch_offset", 8, "dispatch_offset = 8 must be at most"),
    (None, "sustained_clock_mhz", 3e3, "sustained_clock_mhz = 3000.0 must be"),
    (None, "xcds", "l2 = 3", "l2 = 3|is not TOML"),
    ("energy", "static_w", 9.0, r"energy.static_w = .* must be \{ value = ..., low"),
    ("energy", "static_w", RANGE.format(9.0, 10.0, 11.0), "energy.static_w: low = 10.0 must be at most"),
    ("energy", "static_w", RANGE.format(9.0, 0, 11.0), "energy.static_w: low = 0 must be more than 0"),
    ("l2", "ways", RANGE.format(9.0, 8.0, 11.0), "l2.static_w = .* must be|is not a known key"),
    ("energy", "static_w", RANGE.replace("static", "idle").format(9, 8, 11), "energy.idle_w is not a"),
    ("energy", "static_w", None, "energy.static_w is missing; add static_w = "),
    ("energy.flop_pj", "fp16", fact_line("half", 1.0), r"energy.flop_pj.half = .* must be"),
    (
        "energy.flop_pj",
        "fp16",
        RANGE.replace("static_w", "fp4").format(2, 1, 3),
        "energy.flop_pj key = 'fp4' is not known",
    ),
    ("partitions", "DPX", 3, "partitions.DPX = 3 must divide xcds = 8"),
    ("partitions", "DPX", fact_line("XPX", 2), "partitions key = 'XPX' is not known"),
    ("memory_modes.NPS4", "domains", fact_line("domain", 4), "memory_modes.NPS4.domain is not a known key"),
    ("memory_modes.NPS4", "domains", None, "memory_modes.NPS4.domains is missing; add domains = "),
    ("memory_modes.NPS4", "domains", 0, "memory_modes.NPS4.domains = 0 must be more"),
    ("memory_modes.NPS4", "domains", 8, "holds QPX, whose 4 devices cannot be spread"),
    ("memory_modes.NPS4", "partitions", fact_line("partitions", '["TPX"]'), "'TPX' is not known; accepted: SPX, DPX"),
    ("memory_modes.NPS4", "partitions", fact_line("partitions", '"CPX"'), "NPS4.partitions = 'CPX' must be a list"),
    ("memory_modes.NPS4", "mall_latency_divisor", -1.0, "= -1.0 must be more"),
    (None, "xcds", "xcds = = 8", "is not TOML"),
]


@pytest.mark.parametrize(("section", "key", "line", "message"), BAD)
def test_bad_descriptions_are_refused_by_name(tmp_path, section, key, line, message):
    line = line if line is None or isinstance(line, str) else fact_line(key, line)
    with pytest.raises(SpecError, match=f"^bad.toml: .*({message})") as caught:
        load_text(tmp_path, edited(key, line, section))
    assert caught.value.code == "gpu-spec"


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(SpecError, match=r"absent.toml: cannot be read"):
        gpu(str(tmp_path / "absent.toml"))
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match=r"binary.toml: is not UTF-8"):
        load_gpu(path)
    with pytest.raises(SpecError, match=r"bad.toml: hbm = 3 must be a table, \[hbm\]"):
        load_text(tmp_path, "hbm = 3\n" + re.sub(r"\[hbm\][^\[]*", "", MI300X_TEXT))


def test_a_fitted_fact_and_no_other_names_the_rows_it_was_fitted_to(tmp_path):
    fact = Fact(value=1, status="fitted", source="a book", fitted_to=["paper/stencil_2d@*"])
    assert fact.fitted_to == ("paper/stencil_2d@*",)
    for status, rows, message in (
        ("fitted", [], "name the rows"),
        ("measured", ["paper/gemm@*"], "leave it out"),
        ("fitted", "paper/gemm@*", "must be a list"),
        ("fitted", [" "], "must be a list"),
    ):
        with pytest.raises(SpecError, match=f"fitted_to = .*{message}"):
            Fact(value=1, status=status, source="a book", fitted_to=rows)
    line = 'ways = { value = 16, status = "fitted", source = "a book" }'
    with pytest.raises(SpecError, match=r"bad.toml: l2.ways: fitted_to = \[\] with status = 'fitted': name the rows"):
        load_text(tmp_path, edited("ways", line, "l2"))
    line = 'ways = { value = 16, status = "fitted", fitted_to = ["paper/gemm@*"], source = "a book" }'
    machine = load_text(tmp_path, edited("ways", line, "l2"))
    assert machine.as_dict()["facts"]["l2.ways"]["fitted_to"] == ("paper/gemm@*",)
    assert "fitted_to" not in machine.as_dict()["facts"]["l2.size_bytes"]
    assert Gpu.from_dict(json.loads(json.dumps(machine.as_dict()))).facts == machine.facts


@pytest.mark.parametrize(("name", "partition", "memory_mode"), MODES)
def test_a_gpu_comes_back_from_its_dictionary(name, partition, memory_mode):
    machine = gpu(name, partition=partition, memory_mode=memory_mode)
    assert pickle.loads(pickle.dumps(machine)) == machine == copy.deepcopy(machine)
    assert hash(copy.deepcopy(machine)) == hash(machine)
    back = Gpu.from_dict(json.loads(json.dumps(machine.as_dict())))
    assert back == machine
    assert back.facts == machine.facts
    with pytest.raises(SpecError, match="not the description of a GPU"):
        Gpu.from_dict({"name": name})


# ---- Does a description upon another take what it should, and say how it knows it?
def test_a_description_on_a_base_states_only_what_differs(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'base = "mi300x"\nxcds = 4\n[l2]\nsize_bytes = 8388608\n[energy]\nstatic_w = 3\n'
    )
    mine, base = gpu(str(tmp_path / "mine.toml")), gpu("mi300x")
    assert (mine.name, mine.xcds, mine.l2.size_bytes) == ("mine", 4, 8388608)
    assert mine.l2.ways == base.l2.ways and mine.hbm == base.hbm and mine.energy.static_w.high == 3
    assert mine.facts["l2.size_bytes"] == Fact(
        value=8388608, status="assumed", source="mine.toml, in place of the mi300x's 4194304"
    )
    own = 'cus_per_xcd = { value = 20, status = "documented", source = "a book" }'
    (tmp_path / "yours.toml").write_text(f'base = "mine.toml"\nname = "ours"\n{own}\n')
    yours = gpu(str(tmp_path / "yours.toml"))
    assert (yours.name, yours.xcds, yours.cus_per_xcd, yours.facts["cus_per_xcd"].source) == ("ours", 4, 20, "a book")
    assert gpu_modes(str(tmp_path / "mine.toml")) == (("SPX", "NPS1"),)  # the modes divide eight XCDs


def test_what_is_known_of_a_base_is_assumed_of_another_chip(tmp_path):
    text = 'base = "h200"\nother_chip = true\nwithout = ["l2_partitions", "hbm.turnaround_ns"]\narch = "{}"\n'
    for arch in ("sm_90a", "sm_100a"):
        (tmp_path / f"{arch}.toml").write_text(text.format(arch))
    base, same, newer = gpu("h200"), *(gpu(str(tmp_path / f"{arch}.toml")) for arch in ("sm_90a", "sm_100a"))
    assert {fact.status for fact in newer.facts.values()} == {"assumed"}
    assert {fact.status for fact in same.facts.values()} == {"assumed", "documented"}
    gone = {key for key in base.facts if key.startswith("l2_partitions.")} | {"hbm.turnaround_ns"}
    for key, fact in base.facts.items():
        if key in gone:
            assert key not in same.facts
            continue
        assert (same.facts[key].value, same.facts[key].fitted_to) == (fact.value, ())
        kept = fact.status in ("assumed", "documented")
        said = fact.source if kept else f"taken from the NVIDIA H200, where it is {fact.status}: {fact.source}"
        assert same.facts[key].source == said
        assert newer.facts[key].source.endswith(fact.source)
    assert same.l2_partitions is None and same.hbm.turnaround_ns is None and same.l2 == base.l2


@pytest.mark.parametrize("name", gpu_names())
def test_each_description_scores_a_small_kernel(name):
    """Nothing is measured on a GPU that lies upon another but what its own file says; every one replays."""
    work = kernel("gemm", M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64)
    for replay in ("lockstep", "timed"):
        scorer = Scorer(work, gpu(name), replay=replay)
        found = scorer.score(Swizzle.parse("identity"))
        assert 0 < found.l2_hit_rate < 1 and found.time_us > 0
    if base_of(name):
        taken = [fact for fact in gpu(name).facts.values() if fact.source.startswith("taken from the ")]
        assert len(taken) > 15 and {fact.status for fact in taken} == {"assumed"}


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ('base = "mi300y"', UnknownName, "did you mean mi300x"),
        ('base = "gone.toml"', SpecError, "base = 'gone.toml' cannot be read"),
        ('base = "me.toml"', SpecError, "perhaps in a circle"),
        ("base = 3", SpecError, "must be the name of a GPU"),
        ('base = "mi300x"\nl2 = 3', SpecError, "must be a table"),
        ('base = "mi300x"\nxcds = "four"', SpecError, "must be a whole number"),
        ('base = "mi300x"\n[l2]\nsizebytes = 3', SpecError, "l2.sizebytes is not a known key"),
        ('base = "mi300x"\nwithout = ["l2_partitions"]', SpecError, "the mi300x has no l2_partitions"),
        ('base = "mi300x"\nwithout = ["l2.ways.value"]', SpecError, "the mi300x has no l2.ways.value"),
        ('base = "mi300x"\nwithout = "mall"', SpecError, "must be a list of keys"),
        ('base = "mi300x"\nother_chip = 1', SpecError, "must be true or false"),
    ],
)
def test_a_base_that_cannot_be_is_refused(tmp_path, text, error, said):
    (tmp_path / "me.toml").write_text(text)
    with pytest.raises(error, match=re.escape(said)):
        gpu(str(tmp_path / "me.toml"))


# ---- Do the partition and memory modes divide a chip as published, and are impossible ones refused?
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
        *((name, {}, "did you mean") for name in ("mi300x-cpxx", "mi300x-cpx-dpx", "mi300x-", "mi300y-cpx")),
    ],
)
def test_modes_that_do_not_go_together_or_are_none_are_refused(name, mode, message):
    with pytest.raises(UnknownName if "mean" in message else SpecError, match=message):
        gpu(name, **mode)


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
