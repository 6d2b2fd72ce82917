"""Does a result come home only to the bundle it is of, and does agreement say what the counters say?"""

import copy
import dataclasses
import hashlib
import json
import shutil

import pytest

from swizzle_sim.hardware import registered
from swizzle_sim.hardware.agreement import FIGURES, Comparison, agreement, outcome
from swizzle_sim.hardware.node.manifest import identity
from swizzle_sim.hardware.registered import PREDICTED, scored
from swizzle_sim.hardware.results import (
    Measurement,
    check_result,
    measurement_of,
    measurements_of,
    read_result,
)
from tests.hardware.conftest import DATA
from tests.in_process import runner
from xcd_model.errors import HardwareError

GEMM = DATA / "h200" / "gemm"
ORDERS = 4


def pair():
    return json.loads((GEMM / "manifest.json").read_text()), json.loads((GEMM / "result.json").read_text())


def predict(source):
    """Predictions that rank orders by the length of their text."""
    size = len(source or "")
    return {"kind": "simulated", "l2_hit_rate": 0.5, "hbm_read_bytes": 1e9 + 1e7 * size, "time_us": 2000.0 + size}


def test_pinned_figures_of_the_h200():
    """Read off Nsight Compute's tables by eye."""
    _, result = pair()
    first, grouped, *_ = measurements_of(result)
    assert first.l2_hit_rate == pytest.approx(0.769, abs=0.002)
    assert grouped.read_bytes == pytest.approx(1.497e9, rel=0.001)
    assert first.time_cold_us == pytest.approx(2139.0, abs=0.1)


def edited(path, value, result):
    found = copy.deepcopy(result)
    at = found
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return found


@pytest.mark.parametrize(
    "path,value,code",
    [
        (("source_sha256",), "0" * 64, "other-kernel"),
        (("kernel",), "attention", "other-kernel"),
        (("problem", "M"), 4096, "other-size"),
        (("gpu", "name"), "mi300x", "other-gpu"),
        (("machine", "arch"), "sm_80", "other-gpu"),
        (("machine", "name"), "NVIDIA H100", "other-gpu"),
        (("machine", "compute_units"), 114, "other-gpu"),
        (("bundle",), "0" * 64, "other-bundle"),
        (("candidates", "candidate_1", "name"), "another", "changed"),
        (("candidates", "candidate_1", "check_before", "permutation"), "differs", "not-a-bijection"),
    ],
)
def test_refused(path, value, code):
    manifest, result = pair()
    check_result(result, manifest)
    with pytest.raises(HardwareError) as caught:
        check_result(edited(path, value, result), manifest)
    assert caught.value.code == code
    assert str(value) in str(caught.value) or code == "not-a-bijection"


def test_a_changed_manifest_is_refused():
    manifest, result = pair()
    manifest["seed"] = 1
    with pytest.raises(HardwareError, match="was changed"):
        check_result(result, manifest)
    assert identity(manifest) != manifest["bundle"]


@pytest.mark.parametrize(
    "text,words",
    [
        ("", "no JSON"),
        ("[]", "no JSON object"),
        ('{"format": 1}', "lacks bundle"),
        (json.dumps({**pair()[1], "format": 2}), "reads format 1"),
        (json.dumps({**pair()[1], "refused": "CPX"}), "did not confirm: CPX"),
    ],
)
def test_other_files_are_refused(tmp_path, text, words):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(HardwareError, match=words):
        read_result(path)


def test_agreement_compares_what_both_have():
    manifest, result = pair()
    found = agreement(manifest, result, predict)
    by_name = {one.figure.name: one for one in found.comparisons}
    assert set(by_name) == {"L2 hit rate", "memory reads", "time, cold"}
    reads = by_name["memory reads"]
    assert reads.predicted[0] == 1e9 and len(reads.candidates) == ORDERS
    assert reads.same_winner is False, "the order as launched is predicted best and was not"
    asked = 32 * (found.measurements[0].l2_hits + found.measurements[0].l2_misses)
    assert by_name["L2 hit rate"].predicted[0] == pytest.approx(1 - 1e9 / asked)
    wrong = edited(("candidates", "candidate_2", "check_after", "how"), "differs", result)
    assert len(agreement(manifest, wrong, predict).comparisons[0].candidates) == ORDERS - 1
    assert agreement(manifest, result).comparisons == ()


def timed(*times, spread=1.0):
    """Agreement over orders with these times: the launch order, the same rewritten, then candidates."""
    manifest, result = pair()
    moved = [0, 0, 5, 5]
    for one, n in zip(manifest["candidates"], moved, strict=True):
        one["moved"] = n
    for entry, time_us in zip(result["candidates"].values(), times, strict=True):
        cold = entry["time_us"]["cold"]
        cold |= {"median": time_us, "lower_quartile": time_us - spread, "upper_quartile": time_us + spread}
    return agreement(manifest, result, lambda _: None), result


def predicted(found, *times):
    """The same with such predictions."""
    return dataclasses.replace(
        found, predicted={key: {"time_us": time} for key, time in zip(found.predicted, times, strict=True)}
    )


@pytest.mark.parametrize(
    ("measured", "guessed", "spread", "words"),
    [
        ((100, 110, 88, 120), (100, 100, 80, 130), 1.0, ("0.800 of the time", "0.800: came true", "loses 0.0 %")),
        (
            (100, 100, 120, 90),
            (100, 100, 80, 130),
            1.0,
            ("1.200 of", "did not come true", "loses 33.3 % of the fastest"),
        ),
        ((100, 100, 99, 120), (100, 100, 80, 130), 3.0, ("cannot be told apart", "not told apart from that")),
        ((100, 100, 120, 90), (100, 100, 105, 130), 1.0, ("predicted 1.050: came true",)),
    ],
)
def test_the_outcome_of_the_choice(measured, guessed, spread, words):
    """Beside the launch order as rewritten code, not as it was: what another text costs is not an order's doing."""
    said = " / ".join(outcome(predicted(timed(*measured, spread=spread)[0], *guessed)))
    for each in words:
        assert each in said


def test_pairs_within_their_spread_are_no_evidence():
    spread = ((1.0, 3.0), (2.0, 4.0), (9.0, 11.0))
    found = Comparison(FIGURES[-1], ("a", "b", "c"), (2.0, 1.0, 3.0), (2.0, 3.0, 10.0), True, spread)
    assert found.pairs == (2, 2) and "2 of 2 pairs beyond the spread" in found.sentence(3)
    level = Comparison(FIGURES[-1], ("a", "b"), (2.0, 1.0), (2.0, 3.0), True, spread[:2])
    assert "no two beyond the spread" in level.sentence(2)


def test_a_clock_that_moves_is_a_doubt():
    found, result = timed(100, 100, 90, 90)
    assert not [one for one in found.doubts if "clock" in one]
    result["timing"]["board"] = {"clock_mhz": {"lowest": 1400.0, "highest": 1980.0}}
    assert any("1400 to 1980 MHz" in one for one in found.doubts)


def test_a_measurement_is_measured_or_replayed():
    with pytest.raises(HardwareError, match="one of measured, replayed"):
        Measurement(candidate="a", name="a", kind="simulated", right="bitwise")


def test_bytes_of_a_copy_on_a_mi300x():
    """Published counters of a 1 GiB copy: 8388760 reads, 8388608 of them of 128 B, 16777216 writes of 64 B."""
    values = {"TCC_HIT_sum": 8391568, "TCC_MISS_sum": 16777296, "TCC_EA0_RDREQ_sum": 8388760, "TCC_BUBBLE_sum": 8388608}
    values |= {"TCC_EA0_RDREQ_32B_sum": 0, "TCC_EA0_WRREQ_sum": 16777216, "TCC_EA0_WRREQ_64B_sum": 16777216}
    entry = {"name": "copy", "counters": {name: {"value": value} for name, value in values.items()}}
    found = measurement_of("original", entry, "replayed", "gfx942")
    assert found.l2_hit_rate == pytest.approx(0.3334, abs=1e-4)
    assert found.write_bytes == 2**30 and found.read_bytes == 2**30 + 152 * 64
    assert found.right == "unchecked"


# ---- Are registered predictions scored only as they were registered, and only by the bundles that they name?
@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Predictions of a launch that an H200 ran: three right, one 30 % off, one of a bundle that nobody ran."""
    shutil.copytree(DATA / "h200" / "gemm", tmp_path / "00-gemm")
    manifest = json.loads((tmp_path / "00-gemm/manifest.json").read_text())
    first, other, *_ = measurements_of(json.loads((tmp_path / "00-gemm/result.json").read_text()))
    values = [
        *((first, "l2_hit_rate", first.l2_hit_rate + 0.02), (first, "read_bytes", 1.3 * first.read_bytes)),
        *((other, "l2_hit_rate", other.l2_hit_rate - 0.01),),
        *((other, "time_ratio", other.time_cold_us / first.time_cold_us),),
    ]
    told = [
        {"bundle": "00-gemm", "candidate": one.candidate, "order": one.name, "figure": figure, "value": value}
        for one, figure, value in values
    ]
    told.append({**told[0], "bundle": "01-gemm"})
    document = {"bundles": {"00-gemm": manifest["bundle"], "01-gemm": "0" * 64}, "predictions": told}
    (tmp_path / PREDICTED).write_text(json.dumps(document))
    register(monkeypatch, tmp_path)
    return tmp_path


def register(monkeypatch, folder):
    digest = hashlib.sha256((folder / PREDICTED).read_bytes()).hexdigest()
    monkeypatch.setattr(registered, "names", lambda: {digest: "mi300x-1"})


def test_each_figure_is_scored_by_what_was_measured_of_it(folder):
    found = scored(folder)
    assert (found.name, found.kind, found.predictions, len(found.outcomes)) == ("mi300x-1", "measured", 5, 4)
    rows = {row["figure"]: row for row in found.rows()}
    assert [(rows[name]["measured"], rows[name]["true"]) for name in rows] == [(2, 2), (1, 0), (1, 1)]
    assert rows["l2_hit_rate"]["median_error"] == pytest.approx(0.015)
    assert rows["read_bytes"]["median_error"] == pytest.approx(0.3)
    assert rows["time_ratio"]["median_error"] == pytest.approx(0.0)


def test_what_was_changed_after_it_was_registered_is_refused(folder, monkeypatch):
    path = folder / PREDICTED
    path.write_text(path.read_text().replace("01-gemm", "02-gemm"))
    with pytest.raises(HardwareError, match="is no registered set of predictions"):
        scored(folder)
    document = json.loads(path.read_text())
    document["bundles"]["00-gemm"] = "f" * 64
    path.write_text(json.dumps(document))
    register(monkeypatch, folder)
    with pytest.raises(HardwareError, match="not the bundle of the predictions"):
        scored(folder)


def test_import_prints_how_many_came_true(folder, monkeypatch, capfd, tmp_path):
    answer = runner(monkeypatch, capfd, tmp_path)("import", str(folder))
    assert not answer.code and "mi300x-1: 4 of 5 registered predictions measured" in answer.out
