"""`make_bundle`: a folder with everything that a node needs to confirm the finalists of a run."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.base.release import version
from swizzle_sim.capture.occupancy import ARCHITECTURES
from swizzle_sim.capture.process import shared_worker
from swizzle_sim.capture.workload import Workload, of_kernel
from swizzle_sim.hardware.bundle_files import Device, arguments_of, device_of, probe_source, standalone, texts
from swizzle_sim.hardware.node.manifest import FORMAT, MANIFEST, digest, identity
from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scores import Score
from swizzle_sim.pricing.waiting import with_flags_unset
from swizzle_sim.rewrite import check_rewritten, rewrite_workload
from swizzle_sim.rewrite.check import Case, compare_interpreted
from swizzle_sim.rewrite.guard import GENERAL, named
from swizzle_sim.rewrite.price import price
from swizzle_sim.workload.kernels import Kernel
from xcd_model import Gpu
from xcd_model.errors import CompileError, HardwareError, RewriteError

ORIGINAL = "original"
SPARE = "swizzle-sim"  # prefix of the folder that a bundle grows in


@dataclass(frozen=True, kw_only=True)
class Finalist:
    """A candidate to confirm."""

    name: str
    source: str  # text in the closed language
    number: int | None = None  # of the attempt in its run
    score: Score | None = None  # what was predicted, from the replay named in the bundle


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where the predictions and the inputs of a bundle come from."""

    run: str = ""  # name of the run folder that the finalists come from; empty for candidates without a run
    replay: str = "timed"  # replay of the predictions
    seed: int = 0  # of the inputs


def make_bundle(
    kernel: Kernel,
    gpu: Gpu,
    finalists: Sequence[Finalist],
    folder: Path,
    *,
    baseline: Score | None = None,
    origin: Origin = Origin(),
    check: bool = True,
    on_candidate: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Write a bundle; ``on_candidate`` is called with how many candidates are done, of how many."""
    device = device_of(gpu)
    if not finalists:
        raise HardwareError("nothing to confirm: the launch order is the only candidate; name another with --swizzle")
    if folder.exists():
        raise HardwareError(f"{folder} exists, and a bundle is never changed: name another folder")
    work = of_kernel(kernel)
    original = work.launch.path.read_bytes()
    made = []
    with shared_worker():
        for place, one in enumerate(_as_others(work, gpu, finalists), start=1):
            on_candidate(place - 1, len(finalists))
            made.append(_candidate(work, device, one, place, check))
    arguments, files = arguments_of(with_flags_unset(work.launch) if kernel.waits else work.launch, origin.seed)
    here = resources.files("swizzle_sim.hardware")
    files |= {"kernel_original.py": original, "confirm.py": here.joinpath("files/confirm.py").read_bytes()}
    files |= {f"node/{one.name}": one.read_bytes() for one in here.joinpath("node").iterdir() if one.name[-3:] == ".py"}
    for _, more, _ in made:
        files |= more
    launched = {
        **{"id": ORIGINAL, "name": "launch order", "number": 0, "file": "kernel_original.py"},
        **{"order": None, "probe": None, "source": None, "predicted": _predicted(baseline), "races": False},
    }
    entries = [launched, *(entry for entry, _, _ in made)]
    races = any(one["races"] for one in entries)  # found with one order, and so of all: it is the kernel that races
    entries = [{**one, "races": races} for one in entries]
    files |= standalone(work.launch, files, entries)
    compilers = (one.score.price.after.triton for one in finalists if one.score and one.score.price)  # one for all
    manifest: dict[str, Any] = {
        **{"format": FORMAT, "version": version(), "run": origin.run, "kernel": kernel.name},
        **{"function": work.launch.function, "problem": dict(kernel.problem), "source_sha256": digest(original)},
        **{"gpu": asdict(device), "replay": origin.replay, "seed": origin.seed, "priced_with": next(compilers, None)},
        "launch": {
            **{"arguments": arguments, "constexprs": dict(work.launch.constexprs), "grid": list(work.launch.grid)},
            **{"num_warps": work.launch.num_warps, "num_stages": work.launch.num_stages, "launches": kernel.launches},
        },
        "remapped_grid": made[0][2],
        "candidates": entries,
    }
    manifest["files"] = {name: digest(data) for name, data in sorted(files.items())}
    manifest["bundle"] = identity(manifest)
    files[MANIFEST] = (json.dumps(manifest, indent=1, allow_nan=False) + "\n").encode()
    _write(folder, files | texts(manifest))
    return manifest


def _predicted(score: Score | None) -> dict[str, Any] | None:
    return None if score is None else {"kind": "simulated", **score.as_dict()}


def _as_others(work: Workload, gpu: Gpu, finalists: Sequence[Finalist]) -> list[Finalist]:
    """Finalists, the launch order among them spelled and priced as the others: it is their reference."""
    spelled = next((one.score.price.emission for one in finalists if one.score and one.score.price), None)

    def priced(one: Finalist) -> Finalist:
        if not spelled or one.score is None or one.score.price:
            return one
        emission = replace(named(spelled), handed=False)
        with contextlib.suppress(CompileError, RewriteError):
            found = price(work, Swizzle.parse(one.source, name=one.name), gpu, spellings=(emission,))
            return replace(one, score=replace(one.score, price=found))
        return one

    return list(map(priced, finalists))


def _candidate(
    work: Workload, device: Device, finalist: Finalist, place: int, check: bool
) -> tuple[dict[str, Any], dict[str, bytes], list[int]]:
    """Entry in the manifest, files, and the grid that its order counts."""
    swizzle = Swizzle.parse(finalist.source, name=finalist.name)
    paid = finalist.score.price if finalist.score else None
    emission = named(paid.emission) if paid else GENERAL
    found = rewrite_workload(work, swizzle, num_xcds=device.xcds, emission=emission)
    plain = replace(emission, handed=False)  # the probe answers with a program id
    ids = rewrite_workload(work, swizzle, num_xcds=device.xcds, emission=plain) if emission.handed else found
    cases: tuple[Case, ...] = ()
    if check and paid:
        cases = compare_interpreted(found, work)
    elif check:
        arch = next((one for one in ARCHITECTURES if one.rstrip("a") == device.arch), device.arch)
        cases = check_rewritten(found, work, arch).cases
    key = f"candidate_{place}"
    order = found.guarded.swizzle.permutation(found.grid, device.xcds, work.problem)
    probe, values = probe_source(ids.guarded.form, found.grid, device.xcds, work.problem)
    files = {
        f"{key}.py": found.text,
        f"{key}_order.bin": order.astype("<i4").tobytes(),
        f"{key}_probe.py": probe.encode(),
        f"{key}.txt": finalist.source.encode(),
    }
    entry = {
        **{"id": key, "name": finalist.name, "number": finalist.number, "file": f"{key}.py"},
        **{"order": f"{key}_order.bin", "probe": f"{key}_probe.py", "probe_arguments": values},
        **{"source": finalist.source, "predicted": _predicted(finalist.score)},
        **{"emission": emission.name, "options": dict(paid.offer) if paid else {}},
        "moved": int(np.count_nonzero(order != np.arange(order.size))),
        "races": any(case.races for case in cases),
    }
    return entry, files, list(found.grid.launch)


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """Write all files to a temporary folder and rename it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{SPARE}-", dir=folder.parent))
        try:
            for name, data in files.items():
                path = draft / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                if path.suffix in (".sh", ".sbatch"):
                    path.chmod(0o755)
            draft.chmod(0o755)
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise HardwareError(f"{folder}: the bundle cannot be written ({error.strerror})") from error
