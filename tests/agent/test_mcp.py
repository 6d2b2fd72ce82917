"""Does a coding agent get small answers, misses by kind, and errors that say what to do?"""

import asyncio
import json

import pytest

from swizzle_agent.mcp_server import check, optimize, score, server, show
from xcd_model.errors import LanguageError, ModelError

SMALL = {"M": 512, "N": 512, "K": 128}
GOOD = "contiguous+group_m(size=2)"


def called(*calls):
    """Results of tools as a client sees them."""
    from mcp import Client

    async def session():
        async with Client(server()) as client:
            tools = await client.list_tools()
            return tools, [await client.call_tool(name, given) for name, given in calls]

    return asyncio.run(session())


def test_the_tools_are_listed_and_answer():
    tools, (found, wrong) = called(
        ("check", {"text": "pid = pid % 7", "grid": "64x64"}), ("score", {"kernel": "gem", "text": "row"})
    )
    assert [one.name for one in tools.tools] == ["check", "show", "score", "optimize"]
    verdict = json.loads(found.content[0].text)
    assert not verdict["bijective"] and "both compute tile" in verdict["counterexample"]
    assert wrong.is_error and "did you mean gemm" in wrong.content[0].text


def test_a_score_is_small_and_says_why_misses_are_misses():
    found = score("gemm", GOOD, {"M": 2048, "N": 2048, "K": 256})
    assert len(json.dumps(found)) < 2048
    assert found["score"]["l2_hit_rate"] > found["baseline"]["l2_hit_rate"]
    assert "touched elsewhere" in json.dumps(found["misses_pct"]["baseline"])
    assert found["advice"]["what"] and found["verdict"]["bijective"]
    assert set(score("gemm", "pid = 0", SMALL)) == {"verdict"}


def test_a_kernel_is_shown_with_the_language(tmp_path):
    found = show("gemm", SMALL)
    assert "Tiles of one tile row share" in found["sharing"] and "num_xcds" in found["language"]
    assert len(json.dumps(found)) < 4096


def test_families_are_tried_into_a_folder_below(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = optimize("transpose", "run", {"M": 256, "N": 256})
    assert found["tried"] > 2 and (tmp_path / "run" / "history.sqlite").is_file()
    assert found["best"][0]["score"]["l2_hit_rate"] >= found["baseline"]["l2_hit_rate"]


def test_nothing_outside_is_read_or_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for given in (("show", "/etc/kernel.py"), ("optimize", "../run")):
        with pytest.raises(ModelError, match="lies outside"):
            show(given[1]) if given[0] == "show" else optimize("gemm", given[1], SMALL)
    (tmp_path / "secret.txt").write_text("token = 4711")
    with pytest.raises(LanguageError) as error:
        check(str(tmp_path / "secret.txt"), "64")
    assert "4711" not in str(error.value), "a text is a text, and never the name of a file"
