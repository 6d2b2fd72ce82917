"""What each lever of five published kernels is predicted to bring, written before anything is measured.

``levers FOLDER [--gpu h100] [--evaluations 24] [--threads 4] [--kernel 'NAME SIZE=..' ..]`` searches order alone,
configuration alone and both, with as many evaluations each, and writes ``predicted.json``, a file of each best
instance, and ``run.py``: a machine with that GPU, torch and Triton runs ``python run.py`` in FOLDER. The suite's
kernels are published algorithms written anew; a declaration of anybody's kernel, ``FILE.py:NAME``, is taken too. The
five by default are those whose launch order leaves something to gain on an H100: misses that another order need not
have, or uneven work.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from swizzle_sim.capture.occupancy import compiled_for
from swizzle_sim.capture.process import shared_worker
from swizzle_sim.capture.user_kernel import load
from swizzle_sim.search.jobs import PointStore
from swizzle_sim.search.loop import Budget
from swizzle_sim.search.ranking import OBJECTIVES
from swizzle_sim.tuning.answer import Answer
from swizzle_sim.tuning.joint import COMPILES, EVALUATIONS, Point, tune
from swizzle_sim.tuning.levers import LEVERS, Levers
from swizzle_sim.tuning.template import Template
from swizzle_sim.tuning.written import instance_text
from swizzle_sim.workload.kernels import is_user_kernel, kernel
from swizzle_sim.workload.launch import Launch
from xcd_model import gpu

KERNELS = (
    "gemm M=4096 N=14336 K=2048 BLOCK_M=128 BLOCK_N=128 BLOCK_K=64",
    "attention_gqa B=1 H=32 HKV=8 S=4096 D=64 CAUSAL=1",
    "attention B=1 H=16 S=8192 D=64 CAUSAL=1",
    "moe_gemm TOKENS=1024 EXPERTS=32 N=1536 K=2048",
    "grouped_gemm TOKENS=4096 EXPERTS=8 TOPK=2 N=3584 K=2048",
)


def levers(words: Sequence[str]) -> None:
    """Predict, and write what a machine with the GPU measures."""
    parser = argparse.ArgumentParser(prog="python -m swizzle_benchmarks.lab levers")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--gpu", default="h100")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--kernel", action="append", dest="kernels")
    given = parser.parse_args(words)
    given.folder.mkdir(parents=True, exist_ok=True)
    found = []
    with shared_worker():
        for number, name in enumerate(given.kernels or KERNELS):
            found.append(_predicted(name, given, given.folder / str(number)))
            print(f"{name}: {found[-1]['answer']}", flush=True)
    about = {"gpu": given.gpu, "evaluations": given.evaluations, "kind": "simulated", "kernels": found}
    text = json.dumps(about, indent=1)
    (given.folder / "predicted.json").write_text(text)
    shutil.copy(Path(__file__).with_name("levers_measured.py"), given.folder / "run.py")
    print(
        f"predicted.json: SHA-256 {hashlib.sha256(text.encode()).hexdigest()}; measure: python run.py in {given.folder}"
    )


def _predicted(name: str, given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    word, *sizes = name.split()
    problem = {one.partition("=")[0]: int(one.partition("=")[2]) for one in sizes}
    target, evaluations = gpu(given.gpu), given.evaluations
    base = load(word, problem, target.arch) if is_user_kernel(word) else kernel(word, **problem)
    template = Template(compiled_for(base, target), target, most_compiles=2 * COMPILES * evaluations)
    found = Levers(template, OBJECTIVES["time"], "timed")
    budget = Budget(threads=given.threads)
    answer = Answer(tune(found, LEVERS, PointStore(None), evaluations=evaluations, budget=budget))
    folder.mkdir(exist_ok=True)
    arms = {"as it is": answer.tuned.base, **answer.best}
    instances = {arm: _instance(found, point, folder / f"{arm.replace(' ', '_')}.py") for arm, point in arms.items()}
    return {"name": name, "answer": answer.what, "instances": instances}


def _instance(levers: Levers, point: Point, path: Path) -> dict[str, Any]:
    """An instance in a file, and how it is launched."""
    text, _ = instance_text(levers, point.values, point.order, [])
    path.write_bytes(text)
    template = levers.template
    launch = template.launch(point.values) if template.ranges else template.base.launch
    assert launch
    told = _told(launch)  # a parameter that a rewrite adds has its default
    if any(one.is_index for one in launch.storage.values()):
        made = launch.make_inputs(0)
        np.savez(path.with_suffix(".npz"), **{n: made[n] for n, one in launch.storage.items() if one.is_index})
    return {
        "file": f"{path.parent.name}/{path.name}",
        "predicted_us": point.score.time_us,
        "order": point.order,
        **told,
    }


def _told(launch: Launch) -> dict[str, Any]:
    found = replace(launch, config="", sliced_for="").as_dict()
    return {key: value for key, value in found.items() if key != "path"} | {"options": dict(launch.options)}
