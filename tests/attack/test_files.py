"""Profiler files, results and manifests of others: read, or refused in one line."""

import json
import math
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swizzle_sim.hardware.readers import read_profile
from swizzle_sim.hardware.results import check_result, measurements_of, read_json
from tests.attack.conftest import attack, changed
from tests.hardware.conftest import DATA
from xcd_model.errors import HardwareError, SpecError
from xcd_model.spec.load import load_gpu, shipped

NAMES = sorted(path.name for path in DATA.iterdir() if path.suffix in (".csv", ".json"))
cells = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.text(max_size=5), st.binary(max_size=5)
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


def profile(path):
    """What a reader makes of a file: finite numbers and names, or one line."""
    try:
        found = read_profile(path)
    except HardwareError as error:
        assert "\n" not in str(error), error
        return None
    for one in found.dispatches:
        assert isinstance(one.kernel, str) and isinstance(one.number, int)
        assert all(math.isfinite(value) for value in one.counters.values())
        assert one.duration_ns is None or math.isfinite(one.duration_ns)
    json.dumps([one.counters for one in found.dispatches], allow_nan=False)
    return found


@attack(150)
@given(st.sampled_from(NAMES), st.integers(0, 2**30), st.binary(min_size=1, max_size=8), st.booleans())
def test_files_with_bytes_exchanged(tmp_path_factory, name, at, junk, cut):
    data = (DATA / name).read_bytes()
    at %= len(data)
    path = tmp_path_factory.getbasetemp() / f"bytes-{name}"
    path.write_bytes(data[:at] + junk + (b"" if cut else data[at + len(junk) :]))
    profile(path)


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e999", "", "x", "9" * 400])
def test_numbers_that_are_none_are_left_out_or_refused(tmp_path, word):
    path = tmp_path / "counters.csv"
    path.write_text(
        "Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,k,TCC_HIT_sum,5\n1,k,TCC_MISS_sum," + word + "\n"
    )
    found = profile(path)
    assert found is None or found.notes


def rocpd(path, rows):
    """A rocpd file whose view holds any cells."""
    path.unlink(missing_ok=True)
    db = sqlite3.connect(path)
    names = "dispatch_id, kernel_name, counter_name, value, start, end, grid_size"
    db.execute(f"CREATE TABLE counters_collection ({names})")
    db.executemany("INSERT INTO counters_collection VALUES (?,?,?,?,?,?,?)", rows)
    db.commit()
    db.close()
    return path


@attack(150)
@given(st.lists(st.tuples(*[cells] * 7), max_size=3))
def test_a_rocpd_file_of_any_cells(tmp_path_factory, rows):
    profile(rocpd(tmp_path_factory.getbasetemp() / "any.db", rows))


@attack(150)
@given(st.data())
def test_json_of_any_values(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(changed(json.loads((DATA / "rocprofv3.json").read_text()), data, json_values)))
    profile(path)


@attack(150)
@given(st.booleans(), st.data())
def test_results_and_manifests_of_any_values(tmp_path_factory, of_result, data):
    where = DATA / "h200" / "transpose"
    documents = {name: json.loads((where / f"{name}.json").read_text()) for name in ("result", "manifest")}
    name = "result" if of_result else "manifest"
    documents[name] = changed(documents[name], data, json_values)
    path = tmp_path_factory.getbasetemp() / "result.json"
    path.write_text(json.dumps(documents[name]))
    try:
        documents[name] = read_json(path)
        check_result(documents["result"], documents["manifest"])
        measurements_of(documents["result"])
    except HardwareError as error:
        assert len(str(error)) < 20_000


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, '{"a": NaN}', '{"a": 1e999}', '{"a": -Infinity}'])
def test_json_that_is_nested_or_not_finite_is_refused(tmp_path, text):
    path = tmp_path / "result.json"
    path.write_text(text)
    with pytest.raises(HardwareError):
        read_json(path)
    profile(path)


VALUES = (
    *("nan", "inf", "-inf", "1e308", "1e-320", "-0.0", "-1", "0", "2.5", "1e999", "[]", "{}", "true", "''", "[nan, 1]"),
    *("1979-05-27", "1" * 5000, "0x" + "f" * 6000, "1" + "0" * 31, "[" * 3000, "{value=1}", '"\\u202e"', '"\\u0000"'),
)


def described(path):
    """What is made of a description of a GPU: one that holds together, or one line."""
    try:
        return load_gpu(path)
    except SpecError as error:
        assert "\n" not in str(error) and len(str(error)) < 3000, error
        return None


@attack(150)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(VALUES), st.integers(0, 200)), min_size=1, max_size=2))
def test_descriptions_of_a_gpu_with_values_exchanged(tmp_path_factory, changes):
    lines = shipped("mi300x").read_text(encoding="utf-8").splitlines()
    for at, value, column in changes:
        line = lines[at % len(lines)]
        if column % 3 and "value = " in line:
            before, _, after = line.partition("value = ")
            lines[at % len(lines)] = f"{before}value = {value}, {after.partition(', ')[2]}"
        elif column % 3 == 1:
            lines[at % len(lines)] = line.partition("=")[0] + f"= {value}"
        else:
            lines[at % len(lines)] = line[:column] + value[:1] + line[column + 1 :]
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text("\n".join(lines))
    described(path)


@pytest.mark.parametrize("value", ["1" * 5000, "0x" + "f" * 6000, "1" + "0" * 31, "[" * 3000])
def test_a_value_beyond_toml_is_refused_in_one_line(tmp_path, value):
    path = tmp_path / "big.toml"
    text = shipped("mi300x").read_text(encoding="utf-8")
    path.write_text(text.replace("cus_per_xcd = { value = 38", f"cus_per_xcd = {{ value = {value}"))
    assert described(path) is None
