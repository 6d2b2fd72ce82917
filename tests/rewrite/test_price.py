"""Does the price of a remapping say what it costs, and are the best of a run scored as compiled?"""

import gc
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from swizzle_sim.capture import process
from swizzle_sim.capture.occupancy import NOT_HERE, compile_launch, compiled_for
from swizzle_sim.capture.workload import of_kernel
from swizzle_sim.language import Swizzle, family
from swizzle_sim.language.grid import Grid
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.rewrite import price as pricing
from swizzle_sim.rewrite.guard import FOR_ALL_SIZES, GENERAL
from swizzle_sim.rewrite.kernel import rewrite_workload
from swizzle_sim.rewrite.price import price_finalists
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import History
from swizzle_sim.search.ranking import Ranking
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.workload.kernels import kernel
from swizzle_sim.workload.price import RemapPrice
from tests.capture.same_trace import needs_triton
from tests.machines import COMPILED
from xcd_model import Resources, gpu
from xcd_model.errors import CompileError, NotBijective, RewriteError

LAUNCHED = replace(COMPILED, arch="sm_90a", triton="3.6.0", lds_bytes=66560)
REWRITTEN = replace(LAUNCHED, registers=140, workgroups_per_cu=1)


def test_lost_occupancy_is_named():
    price = RemapPrice(before=LAUNCHED, after=REWRITTEN)
    assert price.loses_occupancy and not price.is_free
    assert str(price) == "118 -> 140 registers, 2 -> 1 workgroups an SM" and price.advice == ""
    bounded = replace(LAUNCHED, registers=128, spills=2)
    offered = replace(price, offer={"maxnreg": 128}, offered=bounded)
    assert not offered.loses_occupancy and offered.launched is bounded
    assert offered.advice == (
        "scored and bundled with maxnreg=128: 118 -> 128 registers, 0 -> 2 spilled, 2 -> 2 workgroups an SM"
    )


def test_a_lost_software_pipeline_is_named_and_no_gain():
    launched = replace(LAUNCHED, arch="gfx942", lds_bytes=49152, instructions_in_flight=8, workgroups_per_cu=1)
    after = replace(launched, lds_bytes=8192, instructions_in_flight=2, workgroups_per_cu=3)
    lost, kept = RemapPrice(before=launched, after=after), RemapPrice(before=launched, after=launched)
    assert lost.loses_pipeline and lost.is_costly and not lost.is_free and not kept.is_costly
    assert str(lost).endswith("software pipeline lost (LDS 49152 -> 8192 B, 8 -> 2 loads in flight)")
    assert pricing._cost((kept, SimpleNamespace(text=b"longer"), None), 0) < pricing._cost(
        (lost, SimpleNamespace(text=b""), None), 0
    )
    assert RemapPrice(before=launched, after=replace(launched, spills=10)).is_costly
    spilling = replace(launched, spills=50)
    assert not RemapPrice(before=spilling, after=replace(launched, spills=54)).is_costly
    assert RemapPrice(before=spilling, after=replace(launched, spills=80)).is_costly


def test_registers_without_occupancy_are_no_loss_and_not_free():
    price = RemapPrice(before=replace(LAUNCHED, arch="gfx942"), after=replace(LAUNCHED, arch="gfx942", registers=120))
    assert not price.loses_occupancy and not price.is_free
    assert str(price).endswith("2 -> 2 workgroups a CU")
    assert RemapPrice(before=LAUNCHED, after=LAUNCHED).is_free
    assert not RemapPrice(before=LAUNCHED, after=replace(LAUNCHED, spills=1)).is_free


def test_a_price_survives_json():
    price = RemapPrice(before=LAUNCHED, after=REWRITTEN, emission="x", offer={"maxnreg": 128}, offered=LAUNCHED)
    document = json.loads(json.dumps(price.as_dict()))
    assert document["loses_occupancy"] is False and price.launched == LAUNCHED  # as it is bundled
    assert RemapPrice.from_dict(document) == price
    plain = RemapPrice(before=LAUNCHED, after=LAUNCHED)
    assert RemapPrice.from_dict(json.loads(json.dumps(plain.as_dict()))) == plain


# ---- Is a swizzle priced by what the compiler makes of it, kept, and scored with its own occupancy?
SMALL = {"M": 512, "N": 512, "K": 64, "BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}
GROUPED = Swizzle.parse(family("group_m(size=4)"), "group_m(size=4)")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@needs_triton
@pytest.mark.parametrize(("name", "widest"), [("h200", 16), ("mi300x", 8)])  # of 64 x 32 items by 256 and 512 lanes
def test_a_swizzle_is_compiled_once_and_kept(name, widest, monkeypatch):
    work, device = of_kernel(kernel("gemm", **SMALL)), gpu(name)
    found, price = pricing.cheapest(work, GROUPED, device)
    assert price.before == compile_launch(work.launch, device.arch).on(device)
    assert price.is_free and price.emission.startswith("this launch")
    assert price.after.loads[0][0] == widest and price.after.instructions_before_loop > 0
    assert found.guarded.emission.name == price.emission
    asked = []

    def only_where_new(launches, arch):
        assert gc.isenabled()  # finalists are priced in threads: they compile at once, and rewrite in turn
        asked.extend(launches)
        return [CompileError("the compiler gives up") for _ in launches]

    def in_turn(*given, **options):
        assert not gc.isenabled()
        return rewrite_workload(*given, **options)

    monkeypatch.setattr(pricing, "compile_each", only_where_new)
    monkeypatch.setattr(pricing, "rewrite_workload", in_turn)
    assert pricing.price(work, GROUPED, device) == price and not asked
    with pytest.raises(CompileError, match="gives up"):
        pricing.price(work, GROUPED, device, spellings=(GENERAL,))
    assert len(asked) == 1


def test_a_kernel_without_source_and_one_that_cannot_be_written(monkeypatch):
    with pytest.raises(CompileError, match="no Triton source here"):
        pricing.price(replace(kernel("gemm", **SMALL), make_launch=None), GROUPED, gpu("h200"))
    monkeypatch.setattr(pricing, "compile_launch", lambda launch, arch: _Always())
    monkeypatch.setattr(pricing, "triton_version", lambda: "3.9.0")
    monkeypatch.setattr(pricing, "rewrite_workload", _raising(NotBijective("k.py:3: no")))
    with pytest.raises(RewriteError, match=r"k\.py:3: no"):
        pricing.price(kernel("gemm", **SMALL), GROUPED, gpu("h200"))


class _Always:
    def on(self, device):
        return LAUNCHED


def test_only_what_decides_the_occupancy_changes_the_resources():
    own = Resources(threads=256, vgprs=100, lds_bytes=1000, instructions_in_flight=3, source="declared")
    price = pricing.RemapPrice(before=LAUNCHED, after=REWRITTEN)
    mi300x, h200 = gpu("mi300x"), gpu("h200")
    assert pricing.resources_after(own, price, mi300x) == replace(own, vgprs=140)
    given_back = replace(price, offer={"maxnreg": 128}, offered=LAUNCHED)  # a bundle launches it so
    assert pricing.resources_after(own, given_back, mi300x) is own
    more = pricing.RemapPrice(before=LAUNCHED, after=replace(LAUNCHED, registers=128))
    assert pricing.resources_after(own, more, mi300x) is own
    fewer = pricing.RemapPrice(before=LAUNCHED, after=replace(LAUNCHED, instructions_in_flight=2))
    assert pricing.resources_after(own, fewer, mi300x) == replace(own, instructions_in_flight=1)
    before = LAUNCHED.instructions_before_loop
    for gained, found in ((40, 40), (-40, 0)):  # fewer than before would be no remap's doing
        after = replace(LAUNCHED, instructions_before_loop=before + gained)
        longer = pricing.RemapPrice(before=LAUNCHED, after=after)
        assert pricing.resources_after(own, longer, h200) == replace(own, remap_instructions=found)
        assert pricing.resources_after(own, longer, mi300x) is own
    curve = replace(LAUNCHED, instructions_before_loop=before + 40, instructions_in_curves=25)
    turned = pricing.resources_after(own, pricing.RemapPrice(before=LAUNCHED, after=curve), h200, levels=8)
    assert turned.remap_instructions == 40 + 7 * 25  # the loop over a curve's levels turns once for each
    assert [Grid(sides).levels for sides in ((1,), (2, 1), (131, 127), (256, 4, 2))] == [1, 1, 8, 8]
    assert Grid((131 * 20,), (131, 20)).levels == 8
    loop = {"step_instructions": 90, "after_products": True, "ahead_cycles": 900}
    slower = pricing.RemapPrice(before=LAUNCHED, after=replace(LAUNCHED, **loop))
    assert pricing.resources_after(own, slower, h200) is own  # its loop is not pipelined
    stepping = replace(own, loads_per_step=2, past_l1=True)
    assert pricing.resources_after(stepping, slower, h200) == replace(stepping, **loop, past_l1=False)


@needs_triton
def test_a_form_for_all_sizes_is_compiled_once_for_sizes_of_a_class(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    asked, compiled = [], compile_launch(kernel("gemm", **SMALL).launch, "gfx942")

    def compiled_now(requests):
        asked.extend(Path(one["text_from"]).read_text() for one in requests)
        return [compiled for _ in requests]

    monkeypatch.setattr("swizzle_sim.capture.occupancy._compiled_now", compiled_now)
    for rows in (512, 768):  # of which the text says in a comment
        work = kernel("gemm", **{**SMALL, "M": rows})
        pricing.price(work, GROUPED, gpu("mi300x"), spellings=FOR_ALL_SIZES)
    assert len(asked) == 1
    pricing.price(work, GROUPED, gpu("mi300x"))
    assert len(asked) == 2 and "branch is folded" in asked[1]


@needs_triton
@pytest.mark.parametrize(("spills", "offer"), [(0, {"maxnreg": 128}), (4, {})])
def test_an_option_that_gives_workgroups_back_and_spills_is_not_offered(spills, offer, tmp_path, monkeypatch):
    launch, h200 = replace(kernel("gemm", **SMALL).launch, text_from=tmp_path / "k.py"), gpu("h200")
    compiled = replace(compile_launch(kernel("gemm", **SMALL).launch, "sm_90a"), threads=256, lds_bytes=1024)
    bounded, asked = replace(compiled, vgprs=128, vgpr_spills=spills), []

    def compile_each(launches, arch):
        asked.extend(one.options for one in launches)
        return [bounded]

    monkeypatch.setattr(pricing, "compile_each", compile_each)
    price = pricing.RemapPrice(before=LAUNCHED, after=REWRITTEN)
    price = pricing._with_offer(price, SimpleNamespace(text=b""), compiled, h200, launch)
    assert asked == [{"maxnreg": 128}]
    assert (price.offer, price.offered) == (offer, bounded.on(h200) if offer else None)


def test_the_time_of_a_loops_code_is_the_candidates_where_it_is_sure():
    h200 = gpu("h200")
    own = Resources(threads=256, vgprs=100, lds_bytes=1000, instructions_in_flight=3, source="declared")
    timed = {"step_cycles": 900, "burst_loads": 1, "burst_cycles": 70, "busy_cycles": 7}
    same, fewer = (replace(LAUNCHED, **timed, workgroups_per_cu=held) for held in (2, 1))
    assert (LAUNCHED.workgroups_per_cu, same.registers) == (2, LAUNCHED.registers)
    stepping, bursting = replace(own, loads_per_step=2, step_cycles=800), replace(own, burst_loads=2, burst_cycles=90)
    found = pricing.resources_after(stepping, pricing.RemapPrice(before=LAUNCHED, after=same), h200)
    assert (found.step_cycles, found.burst_loads) == (800, 0)
    found = pricing.resources_after(stepping, pricing.RemapPrice(before=LAUNCHED, after=fewer), h200)
    assert (found.step_cycles, found.burst_loads) == (900, 0)
    found = pricing.resources_after(bursting, pricing.RemapPrice(before=LAUNCHED, after=same), h200)
    assert (found.burst_loads, found.burst_cycles, found.busy_cycles) == (1, 70, 7)


def test_a_candidate_is_replayed_with_its_own_occupancy(monkeypatch):
    scorer = Scorer(
        replace(kernel("gemm", **SMALL), resources=replace(kernel("gemm").resources, vgprs=118, lds_bytes=0)),
        gpu("mi300x"),
    )
    price = pricing.RemapPrice(before=LAUNCHED, after=REWRITTEN)
    monkeypatch.setattr(pricing, "price", lambda *args, **how: price)
    own, found = pricing.as_compiled(scorer, GROUPED)
    assert found == price and (scorer.occupancy, own.occupancy) == (2, 1)
    score = pricing.score_as_compiled(scorer, GROUPED)
    assert score.price == price
    order = scorer.permutation(GROUPED)
    assert score.l2_hits == own.traffic(order).l2_hits
    assert np.isclose(score.speedup, scorer.baseline.time_us / score.time_us)
    same, none = pricing.as_compiled(scorer, Swizzle.parse(family("row")))
    assert same is scorer and none is None  # the launch order is not rewritten
    there = Swizzle.parse(family("group_n(size=8)"))  # it is the launch order where the grid has eight columns
    assert scorer.kernel.grid.tiles[1] == 8 and scorer.permutation(there).tolist() == list(range(order.size))
    assert pricing.as_compiled(scorer, there)[1] == price


@needs_triton
def test_suite_kernels_are_compiled_for_the_gpu_asked_for():
    declared = kernel("gemm", M=1024, N=1024, K=512, BLOCK_M=128, BLOCK_N=128)
    assert compiled_for(declared, gpu("mi300x")) is declared  # its figures are that compile's
    found = compiled_for(declared, gpu("h200")).resources
    assert found.threads == 256 and found.lds_bytes == 64 * 1024 + 1024
    assert found.source.startswith("compiled for sm_90a with Triton")


def test_without_a_compiler_the_declared_resources_stay_and_say_so(monkeypatch):
    monkeypatch.setenv(process.COMPILER, "/nowhere")
    declared = kernel("gemm", M=1024, N=1024, K=512, BLOCK_M=128, BLOCK_N=128)
    found = compiled_for(declared, gpu("h200")).resources
    assert replace(found, source="") == replace(declared.resources, source="")
    assert NOT_HERE in found.source and "no Triton is installed there" in found.source
    assert compiled_for(replace(declared, resources=found), gpu("h200")).resources == found


# ---- Are the best of a run scored as compiled, and does what loses occupancy fall back?
rank = Ranking().order
SPECS = ("group_m(size=2)", "group_m(size=4)", "column", "contiguous", "snake")


@pytest.fixture
def run(tmp_path):
    work = kernel("gemm", M=1024, N=1024, K=64, BLOCK_M=128, BLOCK_N=128)
    candidates = [Candidate(spec, family(spec), "families") for spec in SPECS]
    made = optimize(work, gpu("mi300x"), tmp_path / "run", candidates=candidates, replay="lockstep")
    return made, Scorer(work, gpu("mi300x"), replay="lockstep")


def price_by(monkeypatch, answer):
    def score(scorer, swizzle, known):
        price = answer(swizzle.name)
        slower = 3.0 if price.loses_occupancy else 1.0
        return replace(known, price=price, time_us=known.time_us * slower, l2_hit_rate=known.l2_hit_rate / slower)

    monkeypatch.setattr(pricing, "score_as_compiled", score)


def test_what_loses_occupancy_falls_back_and_is_named(run, monkeypatch):
    made, scorer = run
    best = made.ranked[0].name
    lost, kept = RemapPrice(before=LAUNCHED, after=REWRITTEN), RemapPrice(before=LAUNCHED, after=LAUNCHED)
    price_by(monkeypatch, lambda name: lost if name == best else kept)
    done = []
    with History(made.folder) as history:
        attempts, why_not = price_finalists(history, scorer, rank, most=2, on_priced=lambda *count: done.append(count))
        assert why_not == "" and list(history) == attempts  # the record is what was found
    after = rank(attempts)
    assert after[0].name != best and done[0] == (1, 2) and len(done) >= 2
    assert all(one.score.price for one in after[:2] if one.number)
    dropped = next(one for one in attempts if one.name == best)
    assert dropped.critique == "118 -> 140 registers, 2 -> 1 workgroups an SM"


def test_without_a_compiler_nothing_changes_and_the_reason_is_given(run, monkeypatch):
    made, scorer = run
    monkeypatch.setattr(pricing, "score_as_compiled", _raising(CompileError("Triton is not installed; it comes with")))
    with History(made.folder) as history:
        attempts, why_not = price_finalists(history, scorer, rank)
        assert why_not.startswith("Triton is not installed") and attempts == list(made.attempts)


def test_a_candidate_that_cannot_be_written_says_why(run, monkeypatch):
    made, scorer = run
    monkeypatch.setattr(pricing, "score_as_compiled", _raising(RewriteError("no tl.program_id", path="k.py")))
    with History(made.folder) as history:
        attempts, why_not = price_finalists(history, scorer, rank, most=2)
    assert why_not == "" and sum("no price: k.py: no tl.program_id" in one.critique for one in attempts) == 2


def test_a_run_that_goes_on_sees_its_attempts_as_judged_and_looks_its_prices_up(run, monkeypatch):
    made, scorer = run
    lost = RemapPrice(before=LAUNCHED, after=REWRITTEN)
    price_by(monkeypatch, lambda name: lost)
    with History(made.folder) as history:
        first, _ = price_finalists(history, scorer, rank, most=2)
        assert first != list(made.attempts) and [one.judged for one in history] == list(made.attempts)
        monkeypatch.setattr(pricing, "score_as_compiled", _raising(AssertionError("compiled again")))
        again, _ = price_finalists(history, scorer, rank, most=2)
        assert again == first == list(history)
        none, _ = price_finalists(history, scorer, lambda attempts: [])
        assert none == list(made.attempts) == list(history)  # no finalist any more


def _raising(error):
    def score(*_, **__):
        raise error

    return score
