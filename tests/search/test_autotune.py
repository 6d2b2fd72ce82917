"""Does the hook prune what Triton's autotuner measures by the model, and never break a launch?"""

import json
import sys
import warnings
from types import SimpleNamespace

import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from swizzle_sim.autotune import Model, prune  # noqa: E402
from swizzle_sim.base.disk_cache import DiskCache  # noqa: E402
from swizzle_sim.capture.recorder import recording_of  # noqa: E402

SIZE = 256


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    monkeypatch.setattr("swizzle_sim.autotune.DiskCache", lambda kind: DiskCache(kind, tmp_path / "cache"))


class Tensor:
    """What a launch reads of a torch tensor."""

    def __init__(self):
        self.shape, self.dtype, self.device = (SIZE, SIZE), "torch.float16", "cpu"

    def stride(self):
        return (SIZE, 1)

    def data_ptr(self):
        return id(self)

    def untyped_storage(self):
        return SimpleNamespace(data_ptr=lambda: id(self))


@triton.jit
def matmul(a, b, c, M, N, K, BLOCK: tl.constexpr, GROUP_M: tl.constexpr):
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK), tl.cdiv(N, BLOCK)
    first = pid // (GROUP_M * tiles_n) * GROUP_M
    high = min(tiles_m - first, GROUP_M)
    pid_m = first + pid % (GROUP_M * tiles_n) % high
    pid_n = pid % (GROUP_M * tiles_n) // high
    rows = pid_m * BLOCK + tl.arange(0, BLOCK)
    columns = pid_n * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, 32):
        inner = k + tl.arange(0, 32)
        x = tl.load(a + rows[:, None] * K + inner[None, :])
        acc += tl.dot(x, tl.load(b + inner[:, None] * N + columns[None, :]))
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(tl.float16))


CONFIGS = [triton.Config({"BLOCK": 32, "GROUP_M": group}, num_warps=4) for group in (1, 16)]
CONFIGS.append(triton.Config({"BLOCK": 64, "GROUP_M": 4}, num_warps=4))


class Tuned:
    """An autotuner on CPU: what it would run and measure is written down."""

    def __init__(self, monkeypatch, by):
        self.measured, self.launched = [], []
        self.tuner = triton.autotune(CONFIGS, key=["M", "N", "K"], prune_configs_by=by, do_bench=self._measure)(matmul)
        monkeypatch.setattr(type(matmul), "run", lambda jit, *args, **given: self.launched.append(given))

    def _measure(self, launch, quantiles):
        launch()
        self.measured.append((self.launched[-1]["BLOCK"], self.launched[-1]["GROUP_M"]))
        return [float(len(self.measured))] * 3

    def __call__(self):
        given = {"grid": lambda meta: (triton.cdiv(SIZE, meta["BLOCK"]) ** 2,), "warmup": False}
        self.tuner.run(Tensor(), Tensor(), Tensor(), SIZE, SIZE, SIZE, **given)


def test_the_autotuner_measures_what_the_model_ranks_first(monkeypatch):
    by = prune(lambda: matmul, top_k=2)
    tuned = Tuned(monkeypatch, by)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tuned()
    assert len(tuned.measured) == 2 and len(tuned.launched) == 3  # two measured, one launched
    model = by["early_config_prune"].__self__
    times = {one: model._known[key]["score"]["time_us"] for one, key in zip("012", model._known, strict=True)}
    assert len(times) == 3
    monkeypatch.setattr(model, "_replayed", lambda document: pytest.fail("a launch that is known is replayed again"))
    again = model.early_config_prune(CONFIGS, tuned_args(), grid=lambda meta: (triton.cdiv(SIZE, meta["BLOCK"]) ** 2,))
    assert [(one.kwargs["BLOCK"], one.kwargs["GROUP_M"]) for one in again] == tuned.measured


def tuned_args():
    return dict(zip("abcMNK", [Tensor(), Tensor(), Tensor(), SIZE, SIZE, SIZE], strict=True))


def test_a_perf_model_is_a_time(monkeypatch):
    model = Model(lambda: matmul, replay="lockstep")
    given = {**tuned_args(), "grid": (64,), **CONFIGS[0].all_kwargs()}
    assert 0 < model.perf_model(**given) < 1e4
    assert model.perf_model(**given) == model.perf_model(**given) and len(model._known) == 1


@pytest.mark.parametrize("broken", ["kernel", "time"])
def test_a_failure_leaves_every_configuration_and_warns_once(monkeypatch, broken):
    def gone():
        raise RuntimeError("no such kernel")

    by = prune(gone) if broken == "kernel" else prune(lambda: matmul, max_seconds=-1)
    tuned = Tuned(monkeypatch, by)
    with pytest.warns(UserWarning, match="no such kernel" if broken == "kernel" else "not enough") as said:
        tuned()
    assert len(said) == 1 and len(tuned.measured) == len(CONFIGS)


def test_what_cannot_be_scored_is_measured(monkeypatch):
    model = Model(lambda: matmul, top_k=1, replay="lockstep")
    priced = model._priced

    def some(given):
        if given["GROUP_M"] == 16:
            raise ValueError("not this one")
        return priced(given)

    monkeypatch.setattr(model, "_priced", some)
    with pytest.warns(UserWarning, match="not this one"):
        left = model.early_config_prune(CONFIGS[:2], tuned_args(), grid=(64,))
    assert len(left) == 2 and left[-1] is CONFIGS[1]


def test_a_share_is_a_share_and_the_public_names_are_two():
    with pytest.raises(ValueError, match=r"top_k = 2\.0"):
        prune(lambda: matmul, top_k=2.0)
    assert sys.modules["swizzle_sim.autotune"].__all__ == ["Model", "prune"]


def test_recorded_calls_have_a_policy_by_their_counts(typed, tmp_path):
    for size, count in ((128, 3), (256, 1)):
        given = {**tuned_args(), "M": size, "BLOCK": 64, "GROUP_M": 1, "num_warps": 4}
        document = recording_of(matmul, given, ((size // 64) * (SIZE // 64),))
        document["launches"][0]["count"] = count
        (tmp_path / f"step{size}.json").write_text(json.dumps(document))
    found = typed("policy", tmp_path, "--swizzle", "contiguous", "--no-compile", "--backend", "serial", "--json")
    assert not found.code, found.err
    assert [(one["calls"], one["values"]["M"]) for one in found.json["sizes"]] == [(3, 128), (1, 256)]
    wrong = typed("policy", tmp_path, "--function", "softmax")
    assert wrong.code == 2 and "softmax" in wrong.err
    assert typed("policy", tmp_path, "--over", "M", "--values", "64").code == 2
