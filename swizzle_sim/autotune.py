"""`prune`: Triton's autotuner measures only the configurations that the model ranks first, at the launch's arguments.

Each configuration of a launch is recorded as `swizzle_sim.record` would, captured in Triton's interpreter in a process
of its own, compiled for the GPU and replayed in its launch order, the kernel's own GROUP_M or NUM_XCDS in it. Nothing
runs on a GPU. What cannot be scored is never left out, and no failure reaches the launch.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from swizzle_sim.base.disk_cache import DiskCache, key_of
from swizzle_sim.pricing.scores import Score
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.ranking import Ranking, default_objectives
from xcd_model import Gpu
from xcd_model import gpu as load_gpu

__all__ = ["Model", "prune"]

MOST_S = 120.0  # of one launch: configurations that are not scored by then are measured
PACKAGES = Path(__file__).parent  # whose code a score depends on


class Model:
    """Prices the configurations of a kernel's autotuner.

    Parameters
    ----------
    kernel : callable
        ``kernel()`` is the function below ``@triton.autotune``, or the autotuner: as a lambda, since the decorator
        stands before the name exists.
    gpu : Gpu or str
        GPU that the kernel is tuned for.
    top_k : int or float
        Configurations left by `early_config_prune`: so many, or that share of them, at least one.
    replay : {"timed", "lockstep"}
    max_seconds : float [s]
        Time for one launch.
    """

    def __init__(
        self,
        kernel: Callable[[], Any],
        gpu: Gpu | str = "mi300x",
        top_k: int | float = 0.25,
        replay: str = "timed",
        max_seconds: float = MOST_S,
    ):
        if isinstance(top_k, bool) or top_k <= 0 or (isinstance(top_k, float) and top_k > 1):
            raise ValueError(f"top_k = {top_k!r}: a count of configurations, or a share of them above 0 and up to 1.0")
        self.kernel, self.top_k, self.replay, self.max_seconds = kernel, top_k, replay, max_seconds
        self.gpu = load_gpu(gpu) if isinstance(gpu, str) else gpu
        self._known: dict[str, dict[str, Any]] = {}
        self._warned = False

    def perf_model(self, **given: Any) -> float:
        """Predicted time of one configuration [us], as Triton's ``perf_model``; infinite where there is none.

        Triton leaves out what is over its own ``top_k``, scored or not: `early_config_prune` keeps what has no score.
        """
        try:
            return self._priced(given)["score"]["time_us"]
        except Exception as error:
            self._warn(error)
            return math.inf

    def early_config_prune(self, configs: Sequence[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
        """Configurations to measure, best first, as Triton's ``early_config_prune``; all where nothing can be said."""
        try:
            from swizzle_sim.capture.process import shared_worker  # noqa: PLC0415 - in whoever tunes

            with shared_worker():
                priced, unknown = self._all_priced(configs, {**named_args, **kwargs})
            if not priced:
                return list(configs)
            most = max(1, int(len(configs) * self.top_k)) if isinstance(self.top_k, float) else self.top_k
            return [*self._ranked(priced)[:most], *unknown]
        except Exception as error:  # whatever it is, a launch goes on
            self._warn(error)
            return list(configs)

    def _all_priced(self, configs: Sequence[Any], given: dict[str, Any]) -> tuple[list[tuple[Any, Any]], list[Any]]:
        """Configurations with what the replay says, and those of which it says nothing."""
        priced, unknown, end_s = [], [], time.monotonic() + self.max_seconds
        for one in configs:
            try:
                if time.monotonic() > end_s:
                    raise TimeoutError(f"{self.max_seconds:g} s were not enough for {len(configs)} configurations")
                priced.append((one, self._priced({**given, **one.all_kwargs()})))
            except Exception as error:
                self._warn(error)
                unknown.append(one)
        return priced, unknown

    def _ranked(self, priced: Sequence[tuple[Any, Mapping[str, Any]]]) -> list[Any]:
        """By predicted time; those that make the same requests in other orders by what ranks orders of their class."""
        found = sorted(priced, key=lambda one: one[1]["score"]["time_us"])
        alike: dict[str, list[int]] = {}
        for place, (_, about) in enumerate(found):
            alike.setdefault(json.dumps(about["requests"]), []).append(place)
        ranked: dict[int, Any] = {}
        for places in alike.values():
            ranking = Ranking(default_objectives(self.gpu.name, self.replay, found[places[0]][1]["work_class"]), 1)
            attempts = [
                Attempt(
                    number=k + 1, name=str(place), source=f"{k:06}", proposer="autotune", verdict={},
                    score=Score.from_dict(dict(found[place][1]["score"])),
                )
                for k, place in enumerate(places)
            ]  # fmt: skip
            best_first = [found[int(one.name)][0] for one in ranking.order(attempts)]
            ranked |= dict(zip(places, best_first, strict=True))
        return [ranked[place] for place in range(len(found))]

    def _priced(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Score of one launch, from memory, from the user's cache, or replayed."""
        document = _document(self.kernel(), given)
        key = key_of(document, self.gpu.as_dict(), self.replay, code=(PACKAGES,))
        if key not in self._known:
            store = DiskCache("autotune")
            self._known[key] = store.get(key) or self._replayed(document)
            store.put(key, self._known[key])
        return self._known[key]

    def _replayed(self, document: Mapping[str, Any]) -> dict[str, Any]:
        from swizzle_sim.capture.occupancy import compiled_for  # noqa: PLC0415 - a launch that is known needs none
        from swizzle_sim.capture.user_kernel import capture_file, kernel_of, request_of  # noqa: PLC0415
        from swizzle_sim.pricing.scoring import Scorer  # noqa: PLC0415

        with tempfile.TemporaryDirectory(prefix="swizzle-sim-") as folder:  # of this process alone: ranks tune together
            path = Path(folder, "launch.json")
            path.write_text(json.dumps(document), encoding="utf-8")
            request, arch = request_of(str(path), {}), self.gpu.arch
            kernel = kernel_of(*capture_file(request, arch=arch), arch, request, file=str(path))
            scorer = Scorer(compiled_for(kernel, self.gpu), self.gpu, replay=self.replay)
            score = scorer.baseline
        requests = [list(scorer.kernel.grid.launch), score.l2_requests, str(scorer.kernel.resources)]
        return {"score": score.as_dict(), "requests": requests, "work_class": scorer.work_class}

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            warnings.warn(f"swizzle_sim.autotune leaves configurations to be measured ({said})", stacklevel=3)


def prune(kernel: Callable[[], Any], gpu: Gpu | str = "mi300x", top_k: int | float = 0.25, **options: Any) -> dict:
    """Value for ``triton.autotune(prune_configs_by=...)``.

    Parameters
    ----------
    kernel : callable
        ``lambda: matmul_kernel``, the kernel that is decorated.
    gpu, top_k, **options
        As of `Model`.

    Returns
    -------
    dict
        With ``early_config_prune`` alone, which takes ``top_k`` itself, so that a failure leaves every configuration.
    """
    return {"early_config_prune": Model(kernel, gpu, top_k, **options).early_config_prune}


def _document(kernel: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Recording of a launch of whatever lies below a kernel's decorators, with what heuristics say."""
    from swizzle_sim.capture.recorder import recording_of  # noqa: PLC0415

    values = {
        name: value for name, value in given.items() if value is not None or name not in ("maxnreg", "ir_override")
    }
    while hasattr(getattr(kernel, "fn", None), "fn"):
        for name, heuristic in (getattr(kernel, "values", None) or {}).items():
            values[name] = heuristic(values)
        kernel = kernel.fn
    grid = values.pop("grid")
    return recording_of(kernel, values, grid)
