"""``optimize --tune``: is the lever named, is each instance compiled and captured as launched, and written right?"""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from swizzle_sim.capture.capture import capture
from swizzle_sim.capture.user_kernel import load, name_of, request_of
from swizzle_sim.capture.workload import workload
from swizzle_sim.cli.proposer_options import with_levers
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.ranking import OBJECTIVES
from swizzle_sim.tuning.compare import compare
from swizzle_sim.tuning.estimate import estimated
from swizzle_sim.tuning.joint import BATCH, tune
from swizzle_sim.tuning.levers import LEVERS, Levers
from swizzle_sim.tuning.template import Template, stored_sectors
from swizzle_sim.tuning.written import Written, with_configurations
from swizzle_sim.workload.kernels import kernel
from tests.capture.same_trace import needs_triton
from tests.capture.uncompiled import uncompiled  # noqa: F401  (a fixture)
from tests.in_process import runner
from xcd_model import Resources, gpu
from xcd_model.errors import CaptureError, RewriteError

FILE = Path(__file__).parents[1] / "capture" / "kernels" / "tuned.py"
STARVED = ("optimize", "gemm", "M=1024", "N=1024", "K=128", "--tune", "--no-compile", "--evaluations", "9")


@pytest.fixture
def typed(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return runner(monkeypatch, capsys, tmp_path)


@pytest.fixture
def compiled(monkeypatch, uncompiled):  # noqa: F811
    """A made-up compiler: two warps spill, one needs too much LDS; what it compiled."""
    launches = []

    def compiled(launch, arch, processes=1):
        launches.append(launch)
        lds = 1 << 20 if launch.num_warps == 1 else 0
        found = Resources(threads=64 * launch.num_warps, vgprs=64, lds_bytes=lds, instructions_in_flight=2, source=arch)
        return SimpleNamespace(resources=found, vgpr_spills=3 * (launch.num_warps == 2), sgpr_spills=0)

    monkeypatch.setattr(
        "swizzle_sim.tuning.template.compile_each", lambda all, *how: [compiled(one, *how) for one in all]
    )
    monkeypatch.setattr("swizzle_sim.tuning.template.has_compiler", lambda gpu: True)
    return launches


def test_a_starved_launch_is_told_to_change_its_tiles(typed, monkeypatch):
    monkeypatch.setattr("swizzle_sim.tuning.written.write_tuned", lambda answer, folder: Written(None, "not asked for"))
    found = typed(*STARVED, "-o", "run", "--json").json
    assert found["lever"] == "configuration" and found["why"] == ["16 workgroups on 304 CUs: smaller tiles"]
    arms = found["levers"]
    assert list(arms) == ["order", "configuration", "both"] and {one["evaluations"] for one in arms.values()} == {9}
    assert arms["configuration"]["change_pct"] < -20 < arms["order"]["change_pct"]
    assert arms["both"]["change_pct"] <= arms["configuration"]["change_pct"] + 2
    assert found["best"][0]["workgroups"] > 16 and found["base"]["score"]["speedup"] == 1
    lds = [one["resources"]["lds_bytes"] for one in found["front"]]
    assert lds == sorted(lds) and found["compiles"] == 0
    monkeypatch.setattr("swizzle_sim.pricing.scoring.Scorer.score_order", lambda *a, **k: pytest.fail("replayed again"))
    code, out, _ = typed(*STARVED, "--resume", "run")
    assert code == 0 and out.startswith(found["answer"]) and "no kernel is written: not asked for" in out


@pytest.mark.parametrize("evaluations", (3, 12))
@pytest.mark.parametrize(
    ("name", "device", "sizes"),
    [
        ("gemm", "h100", {"M": 512, "N": 512, "K": 128, "BLOCK_M": 64, "BLOCK_N": 64}),
        ("gemm", "mi300x", {"M": 1024, "N": 768, "K": 128, "BLOCK_M": 64, "BLOCK_N": 64}),
        ("attention_gqa", "h100", {"B": 1, "H": 8, "HKV": 2, "S": 512, "D": 32, "CAUSAL": 1}),
    ],
)
def test_both_are_never_worse_than_one_lever_at_as_many_evaluations(name, device, sizes, evaluations):
    template = Template(kernel(name, **sizes), gpu(device), compile=False)
    levers = Levers(template, OBJECTIVES["time"], "lockstep", seed=evaluations)
    tuned = tune(levers, LEVERS, PointStore(None), evaluations=evaluations)
    order, configuration, both = (arm.points for arm in tuned.arms)
    least = [min(map(tuned.cost, points)) for points in (order, configuration, both)]
    assert least[2] <= min(least[:2]) and len(order) == len(both) == evaluations >= len(configuration)
    answers = [tuned.best(arm) for arm in tuned.arms]  # nor are they where ties are ranked by misses
    assert tuned.cost(answers[2]) <= min(map(tuned.cost, answers[:2]))
    assert (answers[2].values, answers[2].order) in [(one.values, one.order) for one in (tuned.base, *both)]
    for one in (*configuration, *both):  # CUs differ by some percent in speed
        assert levers.least_us(levers.judge(one.values)) < 1.03 * one.score.time_us
    if (name, device) == ("gemm", "h100"):  # its L2 holds all operands: no order has fewer misses, and none is tried
        first = slice(max(0, evaluations - BATCH))
        alone, together = ([(one.values, one.order) for one in points[first]] for points in (configuration, both))
        assert together == alone
    elif evaluations == 12:
        assert len({one.order for one in both}) > 2


def test_an_order_that_the_source_cannot_take_is_not_searched():
    base = kernel("gemm_splitk", M=256, N=512, K=256, SPLITS=4)
    levers = Levers(Template(base, gpu("h100"), compile=False), OBJECTIVES["time"], "lockstep")
    tuned = tune(levers, ["order"], PointStore(None), evaluations=4)
    assert [one.order for one in tuned.arms[0].points] == ["identity"]
    assert any(
        name.startswith("order ") and "does not say how to compute" in why for name, why in levers.refused.items()
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("gemm", "--tune", "stages"), "no lever is called 'stages'"),
        (("gemm", "--tune", "--template", "column"), "--template does not apply to --tune"),
        (("gemm", "--tune", "order", "--objective", "time,energy"), "one objective"),
        ((f"{FILE}:kernel@x", "--tune"), "a configuration's number"),
    ],
)
def test_what_cannot_be_tuned_is_one_line(typed, words, told):
    code, out, err = typed("optimize", *words)
    assert code == 2 and not out and told in err.strip().splitlines()[-1]


def test_levers_may_be_left_out():
    assert with_levers(["gemm", "--tune"])[-1] == "order,configuration"
    assert with_levers(["--tune", "gemm", "M=64"])[1] == "order,configuration"
    assert with_levers(["--tune", "M=64"])[1] == with_levers(["--tune", "--json"])[1] == "order,configuration"
    assert with_levers(["--tune", "options", "gemm"]) == ["--tune", "options", "gemm"]


@needs_triton
def test_limits_prune_before_a_compile(compiled):
    template = Template(kernel("gemm", M=512, N=512, K=128), gpu("mi300x"), most_compiles=3)
    start = template.start
    assert start == {"BLOCK_M": 256, "BLOCK_N": 256, "BLOCK_K": 64, "num_warps": 8, "num_stages": 2}
    for change, reason in (
        ({"num_warps": 1}, "registers"),
        ({"BLOCK_K": 256}, "LDS"),
        ({"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 1}, "does-not-fit"),
        ({"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 2}, "spills"),
        ({"BLOCK_M": 128, "BLOCK_N": 64, "num_warps": 2}, "spills"),  # is larger than one that spills
        ({"BLOCK_M": 128}, ""),
        ({"BLOCK_M": 64}, "compiles"),
    ):
        assert template.instance({**start, **change}).pruned == reason, change
    assert len(compiled) == template.compiled == 3
    assert template.kernel({**start, "BLOCK_M": 128}).launch.constexprs["BLOCK_M"] == 128
    assert "LDS" in template.why and template.pruned["spills"] == 2


def test_an_estimate_follows_what_was_compiled():
    """Work and registers that are exact powers of the parameters are found again from enough of them."""

    def made(m, n, warps, stages):
        cycles, lds = m * n // 16, 64 * m + 64 * n * stages
        figures = {"threads": 32 * warps, "vgprs": m * n // (64 * warps), "lds_bytes": lds, "busy_cycles": cycles}
        found = Resources(**figures, instructions_in_flight=2 * stages, loads_per_step=2, source="compiled for it")
        return {"M": m, "N": n, "num_warps": warps, "num_stages": stages}, found

    points = [(m, n, w, s) for m in (32, 64, 128) for n in (32, 64, 128) for w in (2, 4, 8) for s in (2, 3, 4)]
    compiled = [made(*one) for place, one in enumerate(points) if place % 4 == 0]
    for place, one in enumerate(points):
        values, true = made(*one)
        found = estimated(values, ["M", "N"], gpu("h100"), compiled)
        assert (found.threads, found.instructions_in_flight) == (true.threads, true.instructions_in_flight)
        assert found.busy_cycles == pytest.approx(true.busy_cycles, rel=0.1)
        assert found.vgprs == pytest.approx(true.vgprs, rel=0.3) and found.lds_bytes == pytest.approx(
            true.lds_bytes, rel=0.3
        )
        if place % 4 == 0:
            assert (found.vgprs, found.lds_bytes) == (true.vgprs, true.lds_bytes)
    assert estimated({**values, "num_stages": 1}, ["M", "N"], gpu("h100"), compiled) is None  # none without a pipeline


@needs_triton
@pytest.mark.parametrize("pipelined", (True, False))
def test_few_are_compiled_and_the_answer_is_that_of_all(monkeypatch, uncompiled, pipelined):  # noqa: F811
    """Registers and LDS follow blocks and warps: a search with estimates finds what one without does."""
    launches = []

    def compiled(launch, arch, processes=1):
        launches.append(launch)
        m, n, k = (launch.constexprs[f"BLOCK_{side}"] for side in "MNK")
        stages = launch.num_stages if pipelined else 1
        figures = {"vgprs": max(32, m * n // (32 * launch.num_warps)), "lds_bytes": 2 * (m + n) * k * stages}
        figures |= {"threads": 32 * launch.num_warps, "loads_per_step": 2 * pipelined}
        found = Resources(**figures, instructions_in_flight=2 * stages, source="compiled for sm_90a")
        return SimpleNamespace(resources=found, vgpr_spills=int(figures["vgprs"] > 255), sgpr_spills=0)

    module = "swizzle_sim.tuning.template"
    monkeypatch.setattr(f"{module}.compile_each", lambda all, *how: [compiled(one, *how) for one in all])
    monkeypatch.setattr(f"{module}.has_compiler", lambda gpu: True)

    def answered():
        made = kernel("gemm", M=1024, N=1024, K=256, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
        base = replace(made, resources=compiled(made.launch, "").resources)
        launches.clear()
        levers = Levers(Template(base, gpu("h100")), OBJECTIVES["time"], "lockstep")
        tuned = tune(levers, ["configuration"], PointStore(None), evaluations=20)
        (arm,) = tuned.arms
        assert arm.evaluations == 20 and all(one.resources["source"] == "compiled for sm_90a" for one in arm.points)
        return tuned.cost(tuned.best(arm)), len({str(one) for one in launches}), arm

    cost, few, arm = answered()
    assert arm.estimated > 0
    assert pipelined or len({(one.num_stages > 1, *one.constexprs.values(), one.num_warps) for one in launches}) == few
    monkeypatch.setattr(f"{module}.estimated", lambda *how: None)
    every, many, *_ = answered()
    assert few < many and cost <= every + 0.02


def test_a_kernel_without_a_loop_has_no_stages(monkeypatch):
    monkeypatch.setattr("swizzle_sim.tuning.template.has_compiler", lambda gpu: True)
    names = {one: Template(kernel(one), gpu("mi300x")).ranges for one in ("transpose", "gemm")}
    assert names["transpose"]["num_stages"] == (kernel("transpose").launch.num_stages,)
    assert len(names["gemm"]["num_stages"]) == 3


@needs_triton
def test_products_that_a_loop_holds_at_once_rule_out_a_compile(compiled):
    template = Template(kernel("attention", B=1, H=2, S=512, D=64), gpu("h100"))
    alone, both = ({**template.start, "num_warps": 4, "BLOCK_N": one} for one in (128, 256))
    template.prepare([alone, both, alone], processes=2)
    assert len(compiled) == 1 and template.instance(alone).resources and not template.is_plausible(both)
    assert "registers a lane" in template.instance(both).why and len(compiled) == template.compiled == 1


@needs_triton
def test_a_users_instances_are_captured_once_for_their_constants(typed, compiled, monkeypatch):
    captured = []
    keep = lambda launch: captured.append(launch.constexprs) or capture(launch)  # noqa: E731
    monkeypatch.setattr("swizzle_sim.tuning.template.capture", keep)
    words = ("optimize", str(FILE), "--tune", "configuration", "--compile", "--replay", "lockstep")
    found = typed(*words, "--evaluations", "5", "--json").json
    assert len(captured) == len({json.dumps(one, sort_keys=True) for one in captured}) > 1
    tried = found["levers"]["configuration"]
    assert tried["evaluations"] == 5 and found["kernel_file"] == str(FILE)


@needs_triton
def test_an_instance_that_stores_something_else_is_pruned(compiled):
    """63 columns of 512 in tiles of 128 are not all stored by a grid that rounds down."""
    base = load(str(FILE), {"N": 192}, "gfx942")
    template = Template(base, gpu("mi300x"))
    values = {**template.start, "BLOCK_N": 128}
    assert template.instance(values).resources and template.kernel(values) is None
    assert template.instance(values).pruned == "other-outputs"
    other = template.kernel({**template.start, "BLOCK_N": 32})
    assert (stored_sectors(other.build_trace(128)) == stored_sectors(base.build_trace(128))).all()


@needs_triton
def test_what_is_written_is_compared_with_the_original():
    work = workload(str(FILE), {})
    other = workload(str(FILE), {"BLOCK_M": 64})
    text = FILE.read_bytes()
    assert compare(work, other, text).cases
    with pytest.raises(RewriteError, match=r"computes otherwise: .*c differs"):
        compare(work, other, text.replace(b"total.to(tl.float16)", b"(total + 1).to(tl.float16)"))


def test_constants_become_defaults_and_the_three_best_a_list(tmp_path):
    work = kernel("gemm", BLOCK_M=128)
    launches = [work.launch, kernel("gemm").launch]
    text = work.triton_source.replace("    BLOCK_N: tl.constexpr,", "    BLOCK_N: tl.constexpr,  # columns")
    found, notes = with_configurations(work.launch.path, text.encode(), "gemm", ["BLOCK_M", "BLOCK_N"], launches)
    new = found.decode()
    assert "    BLOCK_M: tl.constexpr,\n    BLOCK_N: tl.constexpr,  # columns\n" in new  # BLOCK_K has no default
    assert notes[0] == "launch it with BLOCK_M=128, BLOCK_N=256: parameters without a default follow"
    assert 'triton.Config({"BLOCK_M": 128, "BLOCK_N": 256}, num_warps=8, num_stages=2),' in new
    names = ["BLOCK_M", "BLOCK_N", "BLOCK_K"]
    new = with_configurations(work.launch.path, text.encode(), "gemm", names, launches)[0].decode()
    assert "    BLOCK_N: tl.constexpr = 256,  # columns\n" in new
    tuner = FILE.read_text()
    new = with_configurations(FILE, tuner.encode(), "matmul", ["BLOCK_M"], launches)[0].decode()
    assert '@triton.autotune(configs=[triton.Config({"BLOCK_M": 128}, num_warps=8' in new and "BLOCK_M: tl.const" in new


def test_a_name_holds_file_declaration_and_configuration():
    request = request_of("/some/kernel.py:mine@3", {"M": 4})
    assert request == {"path": "/some/kernel.py", "name": "mine", "sizes": {"M": 4}, "config": 3}
    for name in ("/some/kernel.py", "/some/kernel.py:mine", "/some/kernel.py:mine@0", "/some/kernel.py:@12"):
        assert name_of(request_of(name, {})) == name
    with pytest.raises(CaptureError, match="after @"):
        request_of("/some/kernel.py:mine@", {})
