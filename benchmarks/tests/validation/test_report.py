"""Do predictions, statistics, targets, report, command and the NVIDIA measurement do as they say?"""

import dataclasses
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from benchmarks.tests.validation.tables import lines_of
from swizzle_benchmarks.validation import statistics
from swizzle_benchmarks.validation.__main__ import app
from swizzle_benchmarks.validation.page.report import write
from swizzle_benchmarks.validation.page.targets import checks
from swizzle_benchmarks.validation.predict import Prediction, key_of, overridden, predict_all, read_sets
from swizzle_benchmarks.validation.rows import all_rows, quick_rows
from swizzle_benchmarks.validation.variants import VARIANTS
from xcd_model import gpu
from xcd_model.errors import SpecError, SwizzleSimError, UnknownName

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "benchmarks/evidence/pages/fidelity.csv"
ROWS = all_rows()
PAPER = [row for row in ROWS if row.table == "paper"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SWIZZLE_SIM_FIDELITY_CACHE", str(tmp_path / "kept"))


def test_statistics_on_rows_whose_answers_are_known():
    assert statistics.spearman([1, 2, 3, 4], [10, 20, 30, 40]) == pytest.approx(1)
    assert statistics.spearman([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert statistics.spearman([1, 1, 2, 3], [5, 6, 7, 8]) == pytest.approx(0.9486833)
    assert statistics.spearman([1, 2, 3], [7, 7, 7]) == 0
    assert statistics.spearman([1, 2], [1, 2]) is None
    chunk = next(row for row in PAPER if row.id == "paper/spmv@4096:chunk")
    base = next(row for row in PAPER if row.id == "paper/spmv@4096:baseline")
    made = [
        Prediction(row=row, variant="timed", value=value, counts={}) for row, value in ((chunk, 30.0), (base, 28.0))
    ]
    found = statistics.summarise(made, statistics.baselines_of(made))
    assert found.signs == (1, 1)
    assert found.mean_abs == pytest.approx((37.3 - 30 + 29 - 28) / 2)


def test_targets_tell_a_hit_from_a_miss():
    rows = [row for row in PAPER if row.kernel == "softmax"]
    exact = [Prediction(row=row, variant="timed", value=row.measured, counts={}) for row in rows]
    off = [dataclasses.replace(one, value=one.row.measured + 10) for one in exact]
    assert all(check.hit for check in checks(exact))
    assert not any(check.hit for check in checks(off) if "mean" in check.what)


def test_predictions_are_kept_until_code_or_constants_change(monkeypatch):
    rows = [row for row in PAPER if row.id == "paper/fused_elementwise@64:baseline"]
    device = gpu("mi300x")
    before = predict_all(rows, ["lockstep"], processes=1)
    monkeypatch.setattr("swizzle_benchmarks.validation.predict.predict", None)  # a replay would fail now
    assert predict_all(rows, ["lockstep"], processes=1) == before
    keys = {key_of(rows[0], name, device) for name in VARIANTS}
    assert len(keys) == len(VARIANTS)
    renamed = dataclasses.replace(device, title="another")
    slower = overridden(device, {"hbm.latency_ns": 400.0})
    assert key_of(rows[0], "timed", renamed) == key_of(rows[0], "timed", device) != key_of(rows[0], "timed", slower)


def test_constants_typed_for_one_run():
    assert read_sets(["mi300x.hbm.latency_ns=400", "h200.l2.index=modulo", "mi300x.dispatch_offset=4"]) == {
        "mi300x": {"hbm.latency_ns": 400, "dispatch_offset": 4},
        "h200": {"l2.index": "modulo"},
    }
    for word in ("hbm=4", "mi300x.hbm.latency_ns", "mi300x=3"):
        with pytest.raises(SpecError, match=r"GPU\.KEY=VALUE"):
            read_sets([word])
    for word, there in (
        ("mi999.clock_mhz=4", "mi300x"),
        ("mi300x.l3.ways=4", "mall"),
        ("mi300x.l2.color=3", "ways"),
        ("h200.mall.latency_ns=3", "no part of h200"),
        ("h200.facts.a=3", "no part of h200"),
    ):
        with pytest.raises(UnknownName, match=there):
            read_sets([word])
    assert overridden(gpu("h200"), {"energy.power_w": 701.0}).energy.power_w.value == 701
    with pytest.raises(UnknownName, match="colour"):
        overridden(gpu("mi300x"), {"l2.colour": 3})
    with pytest.raises(SpecError, match=r"power_w: value = 9999\.0 must be at most"):
        overridden(gpu("h200"), {"energy.power_w": 9999.0})


def test_the_whole_way_on_a_few_rows(tmp_path):
    """Every table and both kinds of order, predicted as on the committed page, and written."""
    rows = [row for row in quick_rows(ROWS) if "16384" not in row.id]
    found = predict_all(rows, ["timed", "analytic"], processes=1)
    assert len(found) == 2 * len(rows)
    committed = {(line["id"], line["variant"]): line["predicted"] for line in lines_of(KEPT)}
    for one in found:
        stated = committed[one.row.id, one.variant]
        assert one.value == (pytest.approx(float(stated), rel=1e-5) if stated else None), f"{one.row.id}: make fidelity"
    written = write(found, tmp_path)
    text = written[0].read_text()
    assert all(f"## {title}" in text for title in ("What to believe", "What choosing by it costs"))
    assert all(f"## {title}" in written[1].read_text() for title in ("Targets", "Fit half and held-out half"))
    assert all(path.stat().st_size > 5000 for path in written[3:])
    assert len(lines_of(written[2])) == len(found)


def test_the_command_prints_and_refuses(tmp_path):
    run = CliRunner().invoke(app, ["--rows", "fused_elementwise@64:baseline", "--variant", "lockstep", "--json"])
    assert run.exit_code == 0
    (row,) = json.loads(run.stdout)["rows"]
    hits, requests = 64 * (16 + 17) - 8 * 9, 64 * (80 + 17)  # each workgroup's cache fetches 17 lines of code
    assert (row["measured"], row["predicted"]) == (31.7, pytest.approx(100 * hits / requests))
    shown = CliRunner().invoke(app, ["--rows", "fused_elementwise@64:baseline", "--variant", "lockstep"])
    assert "fit" in shown.stdout and "+1.2" in shown.stdout
    words = ["--rows", "fused_elementwise@64:baseline", "--variant", "lockstep", "--from", str(KEPT)]
    assert CliRunner().invoke(app, words).stdout == shown.stdout
    for words in (["--gpu", "mi999"], ["--variant", "magic"], ["--rows", "nothing-like-it"], ["--half", "better"]):
        assert isinstance(CliRunner().invoke(app, words).exception, UnknownName)
    for words, why in (
        (["--half", "fit", "--kernel", "spmv"], "all are of the held out half"),
        (["--gpu", "h200", "--set", "mi300x.clock_mhz=2000"], "mi300x: .* none of the [0-9]+ rows is of that GPU"),
        (["--from", str(KEPT), "--set", "mi300x.clock_mhz=2000"], "rows are not replayed with --from"),
    ):
        refused = CliRunner().invoke(app, words).exception
        assert isinstance(refused, SwizzleSimError) and re.search(why, str(refused))
    (tmp_path / "a file").write_text("")
    assert CliRunner().invoke(app, ["--quick", "--out", str(tmp_path / "a file")]).exit_code == 2
