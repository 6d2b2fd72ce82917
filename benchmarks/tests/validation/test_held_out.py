"""Launches drawn by a seed: are they the ones of the seed, and is what is said of them what was counted?"""

import csv

import pytest

from swizzle_benchmarks.validation import held_out
from swizzle_benchmarks.validation.draws import KERNELS, PUBLISHED
from swizzle_benchmarks.validation.held_out import (
    DRAWS,
    LAUNCHED,
    Ran,
    committed,
    drawn,
    of_launch,
    pairs,
    ranked,
    regrets,
    tables,
)
from swizzle_benchmarks.validation.ranked_pairs import ROOT, losses
from swizzle_benchmarks.validation.rows import DATA
from swizzle_sim.search.ranking import evidence_of
from swizzle_sim.search.ranking.evidence import reads_break_ties

PAGE = " ".join((ROOT / "docs/hardware.md").read_text(encoding="utf-8").split())


def _lines(name):
    with (DATA / f"{name}_held_out_predicted.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", DRAWS)
def test_the_committed_launches_are_those_of_the_seed(name):
    wanted = [
        (what, order, size) for what, sizes, orders in drawn(name, DRAWS[name].seed)
        for order in (LAUNCHED, *orders) for size in [sizes]
    ]  # fmt: skip
    lines = _lines(name)
    assert [(one["kernel"], one["order"]) for one in lines] == [one[:2] for one in wanted]
    for line, (_, _, sizes) in zip(lines, wanted, strict=True):
        problem = dict(word.split("=") for word in line["problem"].split())
        assert {key: int(problem[key]) for key in sizes} == sizes


@pytest.mark.parametrize("name", DRAWS)
def test_every_launch_was_counted_with_the_right_result(name):
    assert len(committed(name)) == len(_lines(name))


def test_the_page_says_what_was_counted():
    assert tables() in (ROOT / "docs/hardware.md").read_text(encoding="utf-8")


def test_the_prose_beside_the_tables_is_true():
    """Each figure of the page's sentences on what was missed, from the counts."""
    groups = {name: of_launch(committed(name)) for name in DRAWS}
    transposes = [group for group in groups["h200"] if group[0].kernel == "transpose"]
    others = [(group[0], one) for group in transposes for one in group[1:]]
    faster = [100 * (1 - one.predicted_us / first.predicted_us) for first, one in others]
    slower = [100 * (one.measured_us / first.measured_us - 1) for first, one in others]
    longer = [value for value in slower if value > 0]
    assert (len(longer), len(slower)) == (7, 8) and "in seven of eight" in PAGE
    assert f"predicted {min(faster):.0f} to {max(faster):.0f} % faster in any other order" in PAGE
    assert f"takes {min(longer):.0f} to {max(longer):.0f} % longer" in PAGE
    worst = sorted((one for group in groups["h100"] for one in group), key=lambda one: one.points)[-2:]
    assert {one.problem for one in worst} == {worst[0].problem} and "6272 x 12032 x 12608" in PAGE
    grouped = next(
        one for one in committed("h100") if one.problem == worst[0].problem and one.order == "group_m(size=8)"
    )
    said = [f"{one.counted_bytes / one.predicted_bytes:.1f}" for one in worst]
    times = [f"{one.counted_bytes / grouped.counted_bytes:.1f}" for one in worst]
    assert f"read {said[0]} and {said[1]} times what is predicted, and {times[0]} and {times[1]} times" in PAGE
    up_to_the_seventh = [*DRAWS][: [*DRAWS].index("h200_eighth")]
    firsts = [group[0] for name in up_to_the_seventh for group in groups[name]]
    low, others = (
        sorted(one.measured_us / one.predicted_us for one in firsts if one.kernel in names)
        for names in (["attention"], ["attention_gqa", "attention_decode"])
    )
    assert f"Up to the seventh draw attention took {low[0]:.1f} to {low[-1]:.1f} times the predicted time" in PAGE
    assert f"and {others[0]:.1f} to {others[-1]:.1f} times with grouped heads or decoding" in PAGE
    second = committed("h200_second")
    right, every = pairs(second)
    least = regrets(second)["least predicted time"]
    assert f"The second draw has {100 * right / every:.0f} % of the pairs and {100 * least:.2f} %" in PAGE
    last = [*committed("h200_third"), *committed("h200_fourth")]
    near = sum(abs(one.read_error) <= 0.2 for one in last)
    points = sum(abs(one.points) for one in last) / len(last)
    right, every = pairs(last)
    lost = {name: f"{100 * value:.2f} %" for name, value in regrets(last).items()}
    assert f"{len(last)} orders of {len(of_launch(last))} launches" in PAGE
    assert (
        f"have {100 * near / len(last):.0f} % of the reads, {points:.2f} points, {right} of {every} pairs and" in PAGE
    )
    chosen, launched, grouped = (
        lost[name] for name in ("the tool's choice", "launch order", "group_m(size=8), boxes of 4")
    )
    assert f"pairs and {chosen}, where the launch order has {launched} and `group_m(size=8)` {grouped}" in PAGE
    fifth = committed("h200_fifth")
    right, every = pairs(fifth)
    near = sum(abs(one.read_error) <= 0.2 for one in fifth) / len(fifth)
    points = sum(abs(one.points) for one in fifth) / len(fifth)
    chosen, launched, grouped = (
        f"{100 * regrets(fifth)[name]:.2f}"
        for name in ("the tool's choice", "launch order", "group_m(size=8), boxes of 4")
    )
    assert f"has {100 * near:.0f} % of the reads and {points:.2f} points, but {right} of {every} pairs and" in PAGE
    assert f"pairs and {chosen} % (launch order {launched}, `group_m(size=8)` {grouped})" in PAGE
    assert f"All {sum(len(committed(name)) for name in DRAWS)} outputs are equal" in PAGE


def of_all(found):
    """Share of reads [%], points, right and all pairs, those by the tool, and regrets [%], of launches."""
    names = ("the tool's choice", "launch order", "group_m(size=8), boxes of 4")
    near = 100 * sum(abs(one.read_error) <= 0.2 for one in found) / len(found)
    points = sum(abs(one.points) for one in found) / len(found)
    return near, points, pairs(found), ranked(found), [f"{100 * regrets(found)[name]:.2f}" for name in names]


def as_the_page_says(nth):
    """Orders of one of the latest draws, whose figures the page has in one sentence."""
    found = committed(f"h200_{nth.replace('-', '')}")
    near, points, (right, every), tool, (chosen, launched, grouped) = of_all(found)
    assert f"The {nth}, {len(found)} orders of {len(of_launch(found))} launches after decision" in PAGE
    assert f"has {near:.0f} % of the reads and {points:.2f} points; by predicted time {right} of {every} pairs" in PAGE
    lost = f"and it loses {chosen} % (launch order {launched}, `group_m(size=8)` {grouped})"
    assert f"by predicted time {right} of {every} pairs, by the tool's ranking {tool[0]}, {lost}" in PAGE
    return found


def test_what_is_said_of_the_last_draws_was_counted():
    sixth, seventh = committed("h200_sixth"), committed("h200_seventh")
    both = [*sixth, *seventh]
    near = sum(abs(one.read_error) <= 0.2 for one in both) / len(both)
    points = sum(abs(one.points) for one in both) / len(both)
    (right, every), (later, counted) = ranked(sixth) or (0, 0), ranked(seventh) or (0, 0)
    chosen, launched, grouped = (
        [f"{100 * regrets(one)[name]:.2f}" for one in (sixth, seventh)]
        for name in ("the tool's choice", "launch order", "group_m(size=8), boxes of 4")
    )
    assert f"{len(both)} orders of {len([*of_launch(sixth), *of_launch(seventh)])} launches after" in PAGE
    assert f"have {100 * near:.0f} % of the reads and {points:.2f} points" in PAGE
    assert f"{right} of {every} and {later} of {counted} pairs, and it loses {' and '.join(chosen)} %" in PAGE
    assert f"(launch order {' and '.join(launched)}, `group_m(size=8)` {' and '.join(grouped)})" in PAGE


def test_what_is_said_of_the_eighth_and_ninth_draw_was_counted():
    eighth, ninth = committed("h200_eighth"), committed("h200_ninth")

    near, points, (right, every), tool, (chosen, launched, grouped) = of_all(eighth)
    assert f"The eighth, {len(eighth)} orders of {len(of_launch(eighth))} launches" in PAGE
    assert f"has {near:.0f} % of the reads and {points:.2f} points; by predicted time {right} of {every} pairs" in PAGE
    lost = f"and it loses {chosen} % (launch order {launched}, `group_m(size=8)` {grouped})"
    assert f"by the tool's ranking {tool[0]}, {lost}" in PAGE
    less = [one for one in eighth if one.read_error < -0.2]
    more = sorted(one.counted_bytes / one.predicted_bytes for one in less)
    assert len(less) == 6 and {one.kernel for one in less} == {"attention", "attention_gqa"}
    assert f"read {more[0]:.1f} to {more[-1]:.1f} times what is predicted" in PAGE

    near, points, (right, every), tool, (chosen, launched, grouped) = of_all(ninth)
    assert f"The ninth, {len(ninth)} orders of {len(of_launch(ninth))} launches" in PAGE
    assert f"has {near:.0f} % of the reads, {points:.2f} points, {right} of {every} pairs by predicted time" in PAGE
    lost = f"which loses {chosen} % (launch order {launched}, `group_m(size=8)` {grouped})"
    assert f"and {tool[0]} by the tool's ranking, {lost}" in PAGE
    over: dict[str, list[float]] = {}
    for one in ninth:
        over.setdefault(one.kernel.removesuffix("_gqa"), []).append(one.measured_us / one.predicted_us)
    ranges = {name: f"{min(ratios):.2f} to {max(ratios):.2f}" for name, ratios in over.items()}
    assert f"attention takes {ranges['attention']} times the predicted time" in PAGE
    assert f"MLA decoding {ranges['mla_decode']}, decoding {ranges['attention_decode']}" in PAGE
    assert f"paged decoding {ranges['attention_paged']} times" in PAGE

    near, _, (right, every), tool, (chosen, *_) = of_all([*eighth, *ninth])
    assert f"have {near:.0f} % of the reads, {100 * right / every:.0f} % of the pairs by predicted time" in PAGE
    assert f"and {100 * tool[0] / tool[1]:.0f} % by the tool's ranking, and lose {chosen} %" in PAGE


def test_what_is_said_of_the_draws_of_published_kernels_was_counted():
    found = [*committed("h200_tenth"), *committed("h200_eleventh")]
    near, points, _, (right, every), (chosen, launched, grouped) = of_all(found)
    assert f"{len(found)} orders of {len(of_launch(found))} launches: {near:.0f} % of the reads" in PAGE
    assert f"{points:.2f} points, and {right} of {every} pairs by the tool's ranking, which loses {chosen} %" in PAGE
    assert f"where the launch order loses {launched} (`group_m(size=8)` {grouped})" in PAGE
    over = sorted(one.predicted_us / one.measured_us for one in found if one.kernel == "flashinfer persistent")
    others = sorted(one.predicted_us / one.measured_us for one in found if one.kernel != "flashinfer persistent")
    assert f"persistent GEMM is predicted at {over[0]:.2f} to {over[-1]:.2f} of its time" in PAGE
    assert f"Times are {others[0]:.2f} to {others[-1]:.2f} of the measured ones but for that" in PAGE


def of_draws(*names, kernels=KERNELS):
    """What launches of some draws and kernels lose by choosing by time, and in launch order, in the mean [%]; and n."""
    apart, by_reads = evidence_of("h200", "time").tells_apart, reads_break_ties("h200")
    drawn = [(name, one[0].kernel) for name in DRAWS if name.startswith("h200") for one in of_launch(committed(name))]
    every = zip(drawn, losses("h200", apart, by_reads=by_reads), strict=True)
    found = [loss for (name, kernel), loss in every if name in names and kernel in kernels]
    return [100 * sum(column) / len(found) for column in zip(*found, strict=True)], len(found)


def test_what_is_said_of_the_draws_since_workgroups_are_in_step_was_counted():
    wide = committed("h200_fourteenth")
    found = [*committed("h200_twelfth"), *committed("h200_thirteenth"), *wide]
    near, points, (right, every), tool, (chosen, launched, grouped) = of_all(found)
    assert f"{len(found)} orders of {len(of_launch(found))} launches after decision" in PAGE
    assert f"have {near:.0f} % of the reads and {points:.2f} points; by predicted time {right} of {every}" in PAGE
    lost = f"and it loses {chosen} % (launch order {launched}, `group_m(size=8)` {grouped})"
    assert f"pairs, by the tool's ranking {tool[0]}, {lost}" in PAGE
    far = sorted(one.counted_bytes / one.predicted_bytes for one in found if abs(one.read_error) > 0.2)
    assert len(far) == 7 and f"read {far[0]:.2f} to {far[-1]:.2f} times what is predicted" in PAGE

    _, _, (right, every), _, (chosen, launched, _) = of_all(wide)
    assert all(abs(one.read_error) < 0.2 for one in wide) and len(wide) == 40
    assert f"{right} of {every} pairs by predicted time, and it loses {chosen} % (launch order {launched})" in PAGE
    columns = [(one, group[0]) for group in of_launch(wide) for one in group if one.order == "column"]
    longer = [(a.measured_us / b.measured_us, a.predicted_us / b.predicted_us) for a, b in columns]
    assert len(longer) == 4 and sum(measured > 1.1 for measured, _ in longer) == 3
    said = [f"{100 * (side[0] - 1):.0f} to {100 * (side[-1] - 1):.0f} %" for side in _sides(longer)]
    assert f"by columns take {said[0]} longer and are predicted to take {said[1]}" in PAGE


def test_what_is_said_of_the_draws_since_reads_go_as_one_was_counted():
    draws = {name: committed(f"h200_{name}") for name in ("fifteenth", "sixteenth", "seventeenth", "eighteenth")}
    found = [one for some in draws.values() for one in some]
    near, points, (right, every), tool, (chosen, launched, grouped) = of_all(found)
    assert f"The fifteenth to eighteenth, {len(found)} orders of {len(of_launch(found))} launches after" in PAGE
    assert f"have {near:.0f} % of the reads and {points:.2f} points; by predicted time {right} of {every} pairs" in PAGE
    lost = f"and it loses {chosen} % (launch order {launched}, `group_m(size=8)` {grouped})"
    assert f"by the tool's ranking {tool[0]}, {lost}" in PAGE
    _, _, _, tool, (chosen, launched, grouped) = of_all([*draws["fifteenth"], *draws["sixteenth"]])
    lost = f"and lose {chosen} % (launch order {launched}, `group_m(size=8)` {grouped})"
    assert f"drawn, have {tool[0]} of {tool[1]} pairs by the tool's ranking {lost}" in PAGE
    _, _, _, tool, (chosen, launched, _) = of_all([*draws["sixteenth"], *draws["eighteenth"]])
    assert f"in the sixteenth and eighteenth, {tool[0]} of {tool[1]} and {chosen} (launch order {launched})" in PAGE

    _, _, _, tool, (chosen, *_) = of_all([one for one in found if one.kernel != "stencil_2d"])
    assert f"in the other 33 the choice loses {chosen} % and {tool[0]} of {tool[1]} pairs are right" in PAGE
    stencil = {one.order: one for one in found if one.kernel == "stencil_2d"}
    launch, curve = stencil[LAUNCHED], stencil["hilbert"]
    longer, less = curve.measured_us / launch.measured_us - 1, 1 - curve.predicted_us / launch.predicted_us
    assert f"takes {100 * longer:.0f} % longer than as launched and is predicted to take {100 * less:.0f} %" in PAGE
    assert f"predicted at {launch.predicted_us / launch.measured_us:.2f} of its time" in PAGE


def test_what_is_said_of_the_draws_since_an_l1_has_banks_was_counted():
    suite, published, last = (committed(f"h200_{name}") for name in ("nineteenth", "twentieth", "twentyfirst"))
    found = [*suite, *published, *last]
    near, points, (right, every), tool, (chosen, launched, grouped) = of_all(found)
    assert f"The nineteenth to twenty-first, {len(found)} orders of {len(of_launch(found))} launches after" in PAGE
    assert f"have {near:.0f} % of the reads and {points:.2f} points; by predicted time {right} of {every} pairs" in PAGE
    lost = f"and it loses {chosen} % (launch order {launched}, `group_m(size=8)` {grouped})"
    assert f"by the tool's ranking {tool[0]}, {lost}" in PAGE
    assert sum(one.kernel == "stencil_2d" for one in suite) == 15
    _, _, _, tool, (chosen, *_) = of_all(suite)
    assert f"has {tool[0]} of {tool[1]} pairs and loses {chosen} %. The twentieth" in PAGE
    _, _, _, tool, (chosen, launched, _) = of_all(published)
    assert f"has {tool[0]} of {tool[1]} and loses {chosen} where the launch order loses {launched}" in PAGE
    near, points, _, tool, (chosen, launched, _) = of_all(last)
    said = f"{near:.0f} % of the reads, {points:.2f} points, {tool[0]} of {tool[1]} pairs, and it loses {chosen} %"
    assert f"{said} (launch order {launched})" in PAGE
    _, _, _, tool, (chosen, *_) = of_all([*suite, *last])
    assert f"{tool[0]} of {tool[1]} pairs and {chosen} %." in PAGE
    stencils = [one.predicted_us / one.measured_us for one in found if one.kernel == "stencil_2d"]
    assert f"stencils at {min(stencils):.2f} to {max(stencils):.2f} of their time" in PAGE
    deep = [1 / (1 + one.read_error) for one in published if one.kernel == "aiter gemm_a16w16"]
    assert f"reads {min(deep):.1f} to {max(deep):.1f} times what is predicted" in PAGE


def test_what_is_said_of_the_draw_since_a_loop_is_known_by_its_loads_was_counted():
    found = as_the_page_says("twenty-second")
    _, _, _, tool, (chosen, *_) = of_all([one for one in found if one.kernel not in PUBLISHED])
    assert f"Its suite's kernels have {tool[0]} of {tool[1]} pairs and lose {chosen} %" in PAGE
    new = [one for one in found if one.kernel in ("flag-gems block_fp8", "flag-gems baddbmm")]
    _, _, _, tool, (chosen, launched, _) = of_all(new)
    assert f"{tool[0]} of {tool[1]} and {chosen} (launch order {launched})" in PAGE
    _, _, _, _, (chosen, *_) = of_all([one for one in found if one.kernel != "torchao fp8_mm"])
    assert f"Without that launch the choice loses {chosen} %" in PAGE
    decoding, mlstm = (
        [one.predicted_us / one.measured_us for one in found if one.kernel == name]
        for name in ("sglang decode", "mlstm")
    )
    said = f"at {min(decoding):.2f} to {max(decoding):.2f} of its time, mLSTM at {min(mlstm):.2f} to {max(mlstm):.2f}"
    assert said in PAGE
    baddbmm, stencils, int8 = (
        [one.predicted_us / one.measured_us for one in found if one.kernel == name]
        for name in ("flag-gems baddbmm", "stencil_2d", "sglang block_int8")
    )
    assert f"a bias at {min(baddbmm):.2f} to {max(baddbmm):.2f} of its time" in PAGE
    said = f"stencils at {min(stencils):.2f} to {max(stencils):.2f}, sglang's GEMM in int8 at {min(int8):.2f} to"
    assert f"{said} {max(int8):.2f}." in PAGE


def test_what_is_said_of_ties_and_of_all_draws_was_counted():
    believe = " ".join((ROOT / "docs/believe.md").read_text(encoding="utf-8").split())
    ties = evidence_of("h200", "reads_less_in_a_tie")
    assert f"reads break ties rightly in {ties.right} of {ties.pairs} pairs" in PAGE and not reads_break_ties("h200")
    (whole, launched), _ = of_draws(*DRAWS)
    said = f"the choice loses {whole:.2f} % in all {evidence_of('h200', 'time').launches} launches (launch order"
    first = ("h200_tenth", "h200_eleventh", "h200_thirteenth")
    (lost, kept), n = of_draws(*DRAWS, kernels=PUBLISHED)
    assert f"{said} {launched:.2f}) and {lost:.2f} in the {n} of published kernels (launch order {kept:.2f})" in PAGE
    said = f"in {n} launches of such kernels choosing by time lost {lost:.1f} %"
    assert f"{said} and the launch order {kept:.1f}" in believe
    (lost, kept), n = of_draws(*first, kernels=PUBLISHED)
    assert f"in the first {n} of them" in believe
    assert f"were in the model, {lost:.1f} and {kept:.1f}" in believe


def test_rewritten_code_is_faster_in_the_launch_order_too():
    with (DATA / "machine" / "h200_rewritten.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    times = {(one["bundle"], one["order"]): float(one["time_cold_us"]) for one in lines}
    less = sorted(1 - times[place, "column"] / times[place, LAUNCHED] for place in ("00-addmm", "01-addmm"))
    text = (ROOT / "docs/hardware.md").read_text(encoding="utf-8")
    assert f"rewritten, takes {100 * less[0]:.0f} to {100 * less[1]:.0f} % less" in text
    assert {one["registers"] for one in lines if one["order"] == LAUNCHED} == {"255"}


def _sides(longer):
    """Measured and predicted, each sorted, of those that were measured over 10 % longer."""
    return [sorted(side) for side in zip(*(one for one in longer if one[0] > 1.1), strict=True)]


def test_what_is_said_of_published_kernels_was_counted():
    with (DATA / "h200_published_kernels.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    read = [float(one["predicted_read_bytes"]) / float(one["dram_read_bytes"]) for one in lines]
    assert all(abs(one - 1) < 0.002 for one in read[:8]) and {one["result"] for one in lines} == {"bitwise"}
    assert all(0.004 < abs(one - 1) < 0.05 for one in read[8:]) and len(read) == 11
    ratios, gained = [], []
    for name in dict.fromkeys(one["kernel"] for one in lines):
        mine = [one for one in lines if one["kernel"] == name]
        times = [(float(one["predicted_us"]), float(one["time_cold_us"])) for one in mine]
        assert min(times)[1] == min(measured for _, measured in times)
        shares = [predicted / measured for predicted, measured in times]
        ratios.append(f"{min(shares):.2f} to {max(shares):.2f}")
        gained.append(f"{100 * (1 - min(times)[1] / times[0][1]):.0f}")
    assert f"by {gained[0]} and {gained[1]} % over the launch order" in PAGE
    assert f"Times are {ratios[0]} and {ratios[1]} of the measured ones" in PAGE
    assert f"at {ratios[2]} of its time" in PAGE and gained[2] == "0"


def test_what_is_said_of_attentions_instructions_was_counted():
    with (DATA / "machine" / "h200_attention_suite.csv").open(encoding="utf-8", newline="") as file:
        first = next(csv.DictReader(file))
    executed = int(first["warp_instructions"])
    spilled = (int(first["local_loads"]) + int(first["local_stores"])) / executed
    a_score = 32 * executed / (64 * 4096**2 / 2)
    assert f"they are {100 * spilled:.1f} % of what causal attention executes" in PAGE
    assert f"It executes {a_score:.1f} instructions a score" in PAGE
    assert f"results: {float(first['issued_pct']) / 100:.2f} a clock" in PAGE


def _launch(order, predicted, measured, read=100.0, counted=100.0, bundle="a"):
    return Ran(bundle, "gemm", "", order, predicted, measured, read, counted, 1000.0)


def test_errors_pairs_and_regrets_by_hand():
    found = [
        *(_launch(LAUNCHED, 10, 12), _launch("group_m(size=8)", 9, 13), _launch("row", 8, 10)),
        *(_launch(LAUNCHED, 5, 5, bundle="b"), _launch("group_m(size=8)", 6, 5.1, bundle="b")),
    ]
    assert pairs(found) == (2, 3)
    assert list(regrets(found).values()) == pytest.approx([0.0, 0.1, 0.16])
    assert _launch("row", 1, 1, read=150.0).read_error == pytest.approx(0.5)
    assert _launch("row", 1, 1, read=150.0).points == pytest.approx(-5.0)


def test_a_wrong_result_and_a_missing_count_are_left_out(tmp_path):
    predicted, counted = tmp_path / "predicted.csv", tmp_path / "counted.csv"
    predicted.write_text(
        ",".join(held_out.PREDICTED) + "\n" + "".join(f"a,gemm,M=1,c{i},row,1,2,1\n" for i in range(3))
    )
    counted.write_text(
        "bundle,candidate,result,time_cold_us,dram_read_bytes,read_sectors\n"
        "a,c0,bitwise,1,2,3\na,c1,differs,1,2,3\na,c2,bitwise,1,,\n"
    )
    assert len(held_out.read(predicted, counted)) == 1
