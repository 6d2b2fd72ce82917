"""`tune_tiles`: tile sizes, warps, stages and GROUP_M as one space, under the resources of a compute unit.

Registers, LDS and spills come from an AMD compile where Triton is installed, else from a formula. Configurations that
spill or do not fit a CU are pruned and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from swizzle_sim.language import family
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.history import Attempt
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.loop import Points, run
from swizzle_sim.search.ranking import Objective
from swizzle_sim.search.samplers import Sampler
from swizzle_sim.search.templates.space import Space, Values
from swizzle_sim.search.templates.template import ParameterRange
from swizzle_sim.workload.kernels import Kernel, kernel
from xcd_model import Gpu, Resources, workgroups_per_cu
from xcd_model.errors import CompileError, ReplayError, SearchError, SizeError

BLOCKS = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
CHOICES = {"BLOCK_M": (32, 64, 128, 256), "BLOCK_N": (32, 64, 128, 256), "BLOCK_K": (16, 32, 64, 128)}
WARPS, STAGES, GROUPS = (4, 8, 16), (1, 2, 3), (0, 1, 2, 4, 8, 16)
WAVE_SIZE, MOST_VGPRS = 64, 512
FORMULA = (
    "estimated: two registers a lane for each fp32 accumulator of the tile, at least 64; in LDS the A and B tiles of "
    "one stage less than there are, at least one"
)


@dataclass(frozen=True)
class Fit:
    """Resources of a configuration, or why it is pruned: ``spills``, ``does-not-fit``, ``refused``, ``no-compile``."""

    resources: Resources | None
    pruned: str = ""


@dataclass
class TileSpace(Space):
    """Launch configurations of a kernel."""

    base: Kernel  # of the registry, with BLOCK_M, BLOCK_N and BLOCK_K among its sizes
    gpu: Gpu
    compiles: bool  # whether resources come from an AMD compile
    pruned: Counter = field(default_factory=Counter)  # configurations ruled out before a replay, by reason
    _fits: dict[tuple[int, ...], Fit] = field(default_factory=dict, repr=False)

    def __post_init__(self):
        missing = [name for name in BLOCKS if name not in self.base.problem]
        if missing or self.base.file:
            why = f"has no {', '.join(missing)}" if missing else "comes from a file: only the suite's have other tiles"
            raise SearchError(f"--tune tiles: {self.base.name} {why}", code="tune")
        self._kernel = cache(self._made)

    @property
    def ranges(self) -> tuple[ParameterRange, ...]:
        """Values of each parameter; GROUP_M 0 is the launch order."""
        shape = {"num_warps": WARPS, "num_stages": STAGES, "GROUP_M": GROUPS}
        return tuple(ParameterRange(name, values, str(values)) for name, values in (CHOICES | shape).items())

    @property
    def start(self) -> Values:
        """The middle of all ranges if it fits, else smaller tiles."""
        middle = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64, "num_warps": 8, "num_stages": 2, "GROUP_M": 4}
        tries = [middle, middle | {"BLOCK_K": 32}, middle | {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}]
        found = next((values for values in tries if self.allows(values)), None) or next(self.points(), None)
        if found is None:
            counted = ", ".join(f"{n} {why}" for why, n in self.pruned.items())
            raise SearchError(f"--tune tiles: no configuration of {self.base.name} fits: {counted}", code="tune")
        return found

    def allows(self, values: Values) -> bool:
        """Whether a configuration fits a CU and does not spill."""
        return self.fit(values).resources is not None

    def fit(self, values: Mapping[str, int]) -> Fit:
        """Resources of a configuration, for any GROUP_M; a pruned one counts once."""
        key = tuple(values[name] for name in (*BLOCKS, "num_warps", "num_stages"))
        if key not in self._fits:
            self._fits[key] = self._find_fit(values)
            if self._fits[key].pruned:
                self.pruned[self._fits[key].pruned] += 1
        return self._fits[key]

    def _find_fit(self, values: Mapping[str, int]) -> Fit:
        estimated = estimate(values)
        if estimated.vgprs > MOST_VGPRS:  # the accumulators alone exceed the registers
            return Fit(None, "spills")
        found = estimated
        try:
            work = self._kernel(*(values[name] for name in BLOCKS))
            if self.compiles and work.launch is not None:
                from swizzle_sim.capture.occupancy import compile_launch  # noqa: PLC0415  (starts a process)

                launch = replace(work.launch, num_warps=values["num_warps"], num_stages=values["num_stages"])
                compiled = compile_launch(launch, self.gpu.arch)
                if compiled.vgpr_spills or compiled.sgpr_spills or compiled.scratch_bytes:
                    return Fit(None, "spills")
                found = compiled.resources
            workgroups_per_cu(found, self.gpu)
        except ReplayError:
            return Fit(None, "does-not-fit")
        except SizeError:
            return Fit(None, "refused")
        except CompileError:
            return Fit(None, "no-compile")
        return Fit(found)

    def _made(self, block_m: int, block_n: int, block_k: int) -> Kernel:
        blocks = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k}
        return kernel(self.base.name, **{**self.base.problem, **blocks})

    def kernel(self, values: Mapping[str, int]) -> Kernel:
        """The kernel in one configuration that fits."""
        found = self.fit(values).resources
        if found is None:
            raise SearchError(f"--tune tiles: {dict(values)} does not fit", code="tune")
        return replace(self._kernel(*(values[name] for name in BLOCKS)), resources=found)


def tune_tiles(
    space: TileSpace,
    sampler: Sampler,
    objective: Objective,
    store: PointStore,
    *,
    evaluations: int,
    replay: str,
    seed: int = 0,
    on_replay: Callable[[int, int], None] = lambda done, budget: None,
) -> list[dict[str, Any]]:
    """Replay configurations that a sampler suggests; their rows, best first, with the values of each.

    Replays that the store holds are not repeated.
    """
    rows: list[dict[str, Any]] = []

    def propose() -> Generator[Candidate, Attempt, None]:
        while len(rows) < evaluations and (suggested := sampler.suggest()) is not None:
            handle, values = suggested
            group = values["GROUP_M"]
            spec = "identity" if group == 0 else f"contiguous+group_m(size={group})"
            attempt = yield Candidate(spec, family(spec), "tiles", {"values": values})
            assert attempt.score
            rows.append({"values": values, **row_of(attempt)})
            sampler.tell(handle, (objective.cost(attempt.score),))
            on_replay(len(rows), evaluations)

    def judge_of(candidate: Candidate) -> Judge:
        return Judge(Scorer(space.kernel(candidate.told["values"]), space.gpu, replay=replay, seed=seed), alone=True)

    def point_of(name: str, told: Mapping[str, Any]) -> dict[str, Any]:
        about = {"kernel": space.base.name, "problem": dict(space.base.problem), "gpu": space.gpu.name}
        return about | {"replay": replay, "seed": seed, "values": told["values"]}

    def row_of(attempt: Attempt) -> dict[str, Any]:
        resources = space.fit(attempt.verdict["values"]).resources
        about = {} if resources is None else {"vgprs": resources.vgprs, "lds_bytes": resources.lds_bytes}
        return {"score": attempt.score and attempt.score.as_dict(), "swizzle": attempt.name, **about}

    run(propose(), judge_of, Points(store, point_of, row_of))
    return sorted(rows, key=lambda row: objective.cost(Score.from_dict(row["score"])))


def estimate(values: Mapping[str, int]) -> Resources:
    """Resources of a GEMM tile by the documented formula `FORMULA`."""
    threads, (m, n, k) = values["num_warps"] * WAVE_SIZE, (values[name] for name in BLOCKS)
    stages = values["num_stages"]
    return Resources(
        threads=threads,
        vgprs=max(64, 2 * m * n // threads),
        lds_bytes=(m + n) * k * 2 * max(1, stages - 1),
        instructions_in_flight=2 * stages,
        source=FORMULA,
        loads_per_step=2 if stages > 1 else 0,
    )


def has_compiler(gpu: Gpu) -> bool:
    """Whether kernels can be compiled for a GPU here."""
    from swizzle_sim.capture.occupancy import ARCHITECTURES  # noqa: PLC0415
    from swizzle_sim.capture.process import triton_version  # noqa: PLC0415

    try:
        return gpu.arch in ARCHITECTURES and bool(triton_version())
    except CompileError:
        return False
