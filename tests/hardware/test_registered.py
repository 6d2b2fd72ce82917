"""Are registered predictions scored only as they were registered, and only by the bundles that they name?"""

import hashlib
import json
import shutil

import pytest

from swizzle_sim.hardware import registered
from swizzle_sim.hardware.registered import PREDICTED, scored
from swizzle_sim.hardware.results import measurements_of
from tests.hardware.conftest import DATA
from tests.in_process import runner
from xcd_model.errors import HardwareError


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
