"""``optimize --tune configs``: is each configuration captured and compiled as it is launched, and are all compared?"""

from pathlib import Path
from types import SimpleNamespace

import pytest

from swizzle_sim.capture.user_kernel import load, name_of, request_of
from tests.capture.same_trace import needs_triton
from tests.capture.uncompiled import uncompiled  # noqa: F401  (a fixture)
from tests.in_process import runner
from xcd_model import Resources
from xcd_model.errors import CaptureError

FILE = Path(__file__).parent / "kernels" / "tuned.py"
WORDS = ("optimize", str(FILE), "--tune", "configs", "--replay", "lockstep", "--evaluations", "24", "--json")


@pytest.fixture
def typed(monkeypatch, capsys, tmp_path, uncompiled):  # noqa: F811
    """Command line with a cache of its own and a made-up compiler: two warps spill, one needs too much LDS."""

    def compiled(launch, arch):
        lds = 1 << 20 if launch.num_warps == 1 else 0
        found = Resources(threads=64 * launch.num_warps, vgprs=64, lds_bytes=lds, instructions_in_flight=2, source=arch)
        return SimpleNamespace(resources=found, vgpr_spills=3 * (launch.num_warps == 2), sgpr_spills=0)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("swizzle_sim.capture.configurations.compile_launch", compiled)
    return runner(monkeypatch, capsys, tmp_path)


@needs_triton
def test_every_configuration_is_scored_or_refused_and_tiles_are_captured_once(typed, monkeypatch):
    captured = []
    whole = load.__globals__["capture_file"]
    monkeypatch.setattr(
        "swizzle_sim.capture.user_kernel.capture_file", lambda *a, **k: captured.append(a) or whole(*a, **k)
    )
    found = typed(*WORDS, "-o", "tuned").json
    by_place = {one["config"]: one for one in found["configurations"]}
    assert sorted(by_place) == [0, 1, 2, 3, 4] and len(captured) == 2
    assert "spills 3 registers" in by_place[3]["refused"] and "LDS" in by_place[4]["refused"]
    assert [by_place[i]["resources"]["threads"] for i in (0, 1, 2)] == [256, 512, 256]
    assert sum(one.get("tried", 0) for one in by_place.values()) <= 24
    times = [one["best"]["score"]["time_us"] for one in found["configurations"] if "best" in one]
    assert times == sorted(times) and len(times) == 3
    alone = {i: by_place[i]["launch_order"]["time_us"] for i in (0, 1, 2)}
    assert alone[found["fastest_in_launch_order"]] == min(alone.values())
    # one of them by name is the kernel that the table scored
    place = found["configurations"][0]["config"]
    score = typed(
        "score", f"{FILE}:@{place}", "--swizzle", "identity", "--replay", "lockstep", "--no-compile", "--json"
    ).json
    best = by_place[place]
    assert score["baseline"]["l2_requests"] == best["launch_order"]["l2_requests"]

    monkeypatch.setattr("swizzle_sim.pricing.scoring.Scorer.score_order", lambda *a, **k: pytest.fail("replayed again"))
    again = typed(*WORDS, "--resume", "tuned").json
    assert again == found
    code, out, _ = typed(*(word for word in WORDS if word != "--json"), "--resume", "tuned")
    assert code == 0 and "configuration x swizzle" in out
    assert "@3 is not scored: spills 3 registers" in out and "next: swizzle-sim optimize " in out and f"{FILE}:@" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("gemm", "--tune", "configs"), "has no autotuner"),
        ((str(FILE.with_name("matmul.py")), "--tune", "configs"), "has no autotuner"),
        ((f"{FILE}:kernel@1", "--tune", "configs"), "leave out @1"),
        ((str(FILE), "--tune", "configs", "--objective", "energy"), "ranks by time"),
        ((str(FILE), "--tune", "configs", "--sampler", "tpe"), "--sampler does not apply"),
        ((f"{FILE}:kernel@x",), "a configuration's number"),
        ((f"{FILE}:kernel@9",), "the autotuner has 0 to 4"),
        ((str(FILE.with_name("matmul.py")) + ":@0",), "there is no autotuner"),
    ],
)
@needs_triton
def test_what_cannot_be_tuned_is_one_line(typed, words, told):
    code, out, err = typed("optimize", *words)
    assert code == 2 and not out and told in err.strip().splitlines()[-1]


def test_a_name_holds_file_declaration_and_configuration():
    request = request_of("/some/kernel.py:mine@3", {"M": 4})
    assert request == {"path": "/some/kernel.py", "name": "mine", "sizes": {"M": 4}, "config": 3}
    for name in ("/some/kernel.py", "/some/kernel.py:mine", "/some/kernel.py:mine@0", "/some/kernel.py:@12"):
        assert name_of(request_of(name, {})) == name
    with pytest.raises(CaptureError, match="after @"):
        request_of("/some/kernel.py:mine@", {})
