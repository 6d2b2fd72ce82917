"""Bodies that the page never sends: 4xx, never a traceback."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import Client

from swizzle_sim.explore.app import make_app
from swizzle_sim.explore.request_queue import LatestOnlyQueue
from tests.attack.conftest import attack

HERE = "127.0.0.1:8765"
UPDATE = "/_dash-update-component"
HEADERS = {"Host": HERE, "Origin": f"http://{HERE}", "Content-Type": "application/json"}


class Worker:
    """A worker that has not compiled yet."""

    ready, cards = False, ()

    def __call__(self, *given):
        raise AssertionError("nothing reaches the worker")


@pytest.fixture(scope="module")
def client():
    return Client(make_app(LatestOnlyQueue(Worker()), host="127.0.0.1", port=8765).server)


@pytest.fixture(scope="module")
def honest(client):
    """A body for each callback of the page, as its own list of them has it."""
    found = []
    for one in client.get("/_dash-dependencies", headers={"Host": HERE}).get_json():
        if one.get("clientside_function"):
            continue
        value = {kind: [{**entry, "value": None} for entry in one[kind]] for kind in ("inputs", "state")}
        changed = [f"{entry['id']}.{entry['property']}" for entry in one["inputs"][:1]]
        found.append({"output": one["output"], "outputs": [], **value, "changedPropIds": changed})
    assert len(found) >= 4
    return found


@pytest.mark.parametrize(
    "body", [b"", b"[", b"[" * 100_000, b"null", b"[]", b"1", b'"x"', b"{}", b"\xff\xfe", b'{"output": 5}']
)
def test_what_is_no_request_is_refused(client, body):
    answer = client.post(UPDATE, data=body, headers=HEADERS)
    assert 400 <= answer.status_code < 500 and b"Traceback" not in answer.data


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)


@attack(120)
@given(st.data())
def test_bodies_with_values_exchanged(client, honest, data):
    body = json.loads(json.dumps(data.draw(st.sampled_from(honest))))
    for _ in range(data.draw(st.integers(1, 4))):
        key = data.draw(st.sampled_from(["inputs", "state", "outputs", "output", "changedPropIds"]))
        entries = body.get(key)
        if isinstance(entries, list) and entries and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(entries) - 1))
            if isinstance(entries[at], dict):
                entries[at]["value"] = data.draw(values)
            else:
                entries[at] = data.draw(values)
        elif data.draw(st.booleans()):
            body[key] = data.draw(values)
    answer = client.post(UPDATE, data=json.dumps(body), headers=HEADERS)
    assert answer.status_code < 500 and b"Traceback" not in answer.data


def test_a_part_of_no_package_is_a_line(client):
    answer = client.get("/_dash-component-suites/nope/x.js", headers={"Host": HERE})
    assert answer.status_code == 400 and b"Traceback" not in answer.data
