"""Source files of tests, and what `check` says of them."""

import textwrap

import pytest

HEAD = "import triton\nimport triton.language as tl\n\n"


@pytest.fixture
def written(tmp_path):
    def write(text, name="k.py", head=HEAD):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(head + textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def without_conditions(monkeypatch):
    """Where a refuted text holds is of no interest, and takes forty times as long."""
    monkeypatch.setattr("swizzle_sim.testing.settle.proved_conditions", lambda *given: ())
