"""Does the server answer its own page only, whatever is sent, and does that page load nothing else?"""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from werkzeug.test import Client

from swizzle_sim.explore.app import make_app
from swizzle_sim.explore.guard import is_loopback, refusal
from swizzle_sim.explore.request_queue import LatestOnlyQueue
from tests.attack.conftest import attack

HOST, PORT = "127.0.0.1", 8765
HERE = f"{HOST}:{PORT}"


@pytest.fixture(scope="module")
def client():
    class Worker:
        ready, cards = False, {}

    return Client(make_app(LatestOnlyQueue(Worker()), host=HOST, port=PORT).server)


@pytest.mark.parametrize(
    ("headers", "method", "refused"),
    [
        ({"Host": HERE}, "GET", False),
        ({"Host": f"localhost:{PORT}"}, "GET", False),
        ({"Host": f"LOCALHOST:{PORT}"}, "GET", False),
        ({"Host": f"[::1]:{PORT}"}, "GET", False),
        ({"Host": HERE, "Origin": f"http://{HERE}", "Sec-Fetch-Site": "same-origin"}, "POST", False),
        ({"Host": HERE, "Sec-Fetch-Site": "cross-site"}, "GET", False),  # a link from elsewhere may be followed
        ({}, "GET", True),
        ({"Host": f"evil.example:{PORT}"}, "GET", True),  # DNS rebinding
        ({"Host": f"{HOST}:80"}, "GET", True),
        ({"Host": HERE, "Origin": "https://evil.example"}, "POST", True),
        ({"Host": HERE, "Origin": "null"}, "POST", True),
        ({"Host": HERE, "Origin": f"http://localhost:{PORT}"}, "POST", True),
        ({"Host": HERE, "Sec-Fetch-Site": "cross-site"}, "POST", True),
        ({"Host": HERE, "Sec-Fetch-Site": "same-site"}, "POST", True),
    ],
)
def test_only_the_page_itself_is_answered(client, headers, method, refused):
    assert bool(refusal(headers, method=method, host=HOST, port=PORT)) == refused
    if "Host" in headers:
        answer = client.open("/", method=method, headers=headers)
        assert (answer.status_code == 403) == refused


def test_on_another_host_only_its_name_or_any_if_it_has_none():
    assert not refusal({"Host": "lab7:8765"}, method="GET", host="lab7", port=PORT)
    assert refusal({"Host": HERE}, method="GET", host="lab7", port=PORT)
    assert not refusal({"Host": "lab7:8765"}, method="GET", host="0.0.0.0", port=PORT)
    assert refusal({"Host": "lab7:8765", "Origin": "http://evil.example"}, method="POST", host="0.0.0.0", port=PORT)


def test_loopback():
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "192.168.1.2", "lab7")))


def test_the_page_and_its_parts_come_from_here_alone(client):
    answer = client.get("/", headers={"Host": HERE})
    rules = dict(rule.split(" ", 1) for rule in answer.headers["Content-Security-Policy"].split("; "))
    assert rules["default-src"] == "'none'" and rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in rules["script-src"]
    page = answer.get_data(as_text=True)
    loaded = re.findall(r"""(?:src|href)=["']([^"']+)""", page)
    assert loaded and all(one.startswith("/") and not one.startswith("//") for one in loaded)
    for one in loaded:
        with client.get(one, headers={"Host": HERE}) as part:
            assert part.status_code == 200


def test_a_body_that_is_too_large_is_refused(client):
    headers = {"Host": HERE, "Content-Type": "application/json"}
    assert client.post("/_dash-update-component", data=b" " * (5 << 20), headers=headers).status_code == 413
    answer = client.get("/_dash-component-suites/nope/x.js", headers={"Host": HERE})  # a part of no package
    assert answer.status_code == 400 and b"Traceback" not in answer.data


# ---- Bodies that the page never sends: 4xx, never a traceback.
UPDATE = "/_dash-update-component"
HEADERS = {"Host": HERE, "Origin": f"http://{HERE}", "Content-Type": "application/json"}


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
