"""Is the registered set that of its hash, and are made-up runs of its bundles scored as they agree with it?"""

import hashlib
import json
import tarfile

import pytest

from swizzle_benchmarks.validation import registered
from swizzle_sim.hardware.registered import FIGURES, PREDICTED, names, scored

SETS = sorted(registered.SETS.glob("*.tar.xz"))


@pytest.fixture(scope="module", params=SETS, ids=lambda path: path.name)
def folder(request, tmp_path_factory):
    where = tmp_path_factory.mktemp("registered")
    with tarfile.open(request.param) as packed:
        packed.extractall(where, filter="data")
    return where / request.param.name.removesuffix(".tar.xz")


def made_up(bundle, predictions, off):
    """Result of a bundle as a node writes it, never called measured: each figure ``off`` times what is predicted."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    figures = {(one["candidate"], one["figure"]): off * one["value"] for one in predictions}
    candidates = {}
    for one in manifest["candidates"]:
        rate, read = (figures.get((one["id"], name), 0.5) for name in ("l2_hit_rate", "read_bytes"))
        counters = {"TCC_HIT_sum": 1e6 * rate, "TCC_MISS_sum": 1e6 * (1 - rate), "TCC_EA0_RDREQ_sum": read / 64}
        counters |= {"TCC_BUBBLE_sum": 0.0, "TCC_EA0_RDREQ_32B_sum": 0.0}
        took = 100 * figures.get((one["id"], "time_ratio"), 1.0)
        candidates[one["id"]] = {
            "name": one["name"],
            "check_before": {"how": "bitwise", "permutation": "equal"},
            "counters": {name: {"value": value} for name, value in counters.items()},
            "time_us": {"cold": {"median": took, "lower_quartile": took, "upper_quartile": took}},
        }
    same = ("format", "bundle", "kernel", "problem", "source_sha256", "gpu")
    result = {key: manifest[key] for key in same} | {"kind": "replayed", "machine": {}, "candidates": candidates}
    (bundle / "result.json").write_text(json.dumps(result))


def test_every_set_has_its_hash_and_200_predictions_of_30_launches(folder):
    text = (folder / PREDICTED).read_bytes()
    assert names()[hashlib.sha256(text).hexdigest()] == folder.name
    document = json.loads(text)
    assert (len(document["predictions"]), len(document["bundles"])) == (registered.MOST, 30)
    assert folder.name in registered.readme_words()


@pytest.mark.parametrize(("off", "true"), [(1.0, 1), (0.7, 0)])
def test_a_run_is_scored_as_it_agrees(folder, off, true):
    document = json.loads((folder / PREDICTED).read_text())
    for name in document["bundles"]:
        made_up(folder / name, [one for one in document["predictions"] if one["bundle"] == name], off)
    found = scored(folder)
    assert (found.kind, found.predictions, len(found.outcomes)) == ("replayed", registered.MOST, registered.MOST)
    rows = {row["figure"]: row for row in found.rows()}
    assert rows.keys() == FIGURES.keys()
    high = sum(
        0.3 * one["value"] > FIGURES["l2_hit_rate"] for one in document["predictions"] if one["figure"] == "l2_hit_rate"
    )
    of_rates = rows["l2_hit_rate"]
    assert of_rates["true"] == (of_rates["measured"] if true else of_rates["measured"] - high)
    for name in ("read_bytes", "time_ratio"):
        assert rows[name]["true"] == true * rows[name]["measured"] and rows[name]["measured"]
