"""Prompts of the suite as golden files: ``python -m tests.agent.prompts [KERNEL ...]`` writes them anew.

Each is what a model reads after three attempts at the kernel's default sizes, on the MI300X in the timed replay;
`make evidence` compares them, and the default tests ask the same at the sizes of `tests.golden.commands`.
"""

import json
import sys
from functools import lru_cache
from pathlib import Path

from swizzle_agent.prompts import Briefing, propose_program
from swizzle_agent.providers import load_dspy
from swizzle_agent.settings import Settings
from swizzle_sim.cli.arguments import parse_sizes
from swizzle_sim.language import family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.candidates import Candidate
from swizzle_sim.search.judge import Judge
from swizzle_sim.workload.kernels import kernel, registered
from tests.golden.commands import SIZES
from xcd_model import gpu

KERNELS = "swizzle_sim.kernels"
DATA = Path(__file__).parent / "prompts_of_the_suite"
SMALLER = {  # than those of the other golden files: a prompt takes several replays and a bound
    "attention_decode": "B=2 H=16 HKV=4 S=2048 D=64 SPLITS=4",
    "fdtd_2d": "Nx=512 Ny=512",
    "fused_elementwise": "n_elements=1048576",
    "gemm_streamk": "M=1024 N=1024 K=512 PROGRAMS=64",
    "spmv": "M=1024 N=1024",
    "stencil_2d": "M=1024 N=1000",
}
TRIED = (family("contiguous"), family("contiguous"), "pid = pid % 7")


class Notes(dict):
    """Notes of a run, in memory, as they are read back."""

    def note(self, kind, number, value):
        self.setdefault((kind, number), json.loads(json.dumps(value)))

    def noted(self, kind, number=0):
        return self.get((kind, number))


@lru_cache
def briefed(name, context="aware", gpu_name="mi300x", tried=TRIED, sizes=None):
    """Scorer, attempts and inputs of the question that follows the launch order and the orders tried."""
    work = kernel(name, **parse_sizes((SMALLER.get(name, SIZES.get(name)) if sizes is None else sizes).split()))
    scorer = Scorer(work, gpu(gpu_name))
    judge = Judge(scorer, far_worse=True)
    attempts = [
        judge.judge(Candidate(f"attempt {number}", source, "llm:model"), number)
        for number, source in enumerate([family("identity"), *tried])
    ]
    settings = Settings(models=("openai/model",), context=context)
    briefing = Briefing(scorer, settings, Notes(), None, judge.ranking)
    return scorer, attempts, briefing.proposal(attempts, briefing.analysis)


def briefed_at_default(name):
    """Inputs at the kernel's own sizes; of one that is launched in clusters on a GPU that has them."""
    return briefed(name, gpu_name="mi450" if name == "gemm_cluster" else "mi300x", sizes="")[2]


def text_of(inputs):
    """The messages as they are sent."""
    adapter = load_dspy().ChatAdapter()
    messages = adapter.format(propose_program(image=False).signature, [], inputs)
    return "\n\n".join(f"--- {message['role']}\n\n{message['content']}" for message in messages).rstrip() + "\n"


def golden_text(inputs):
    """What a golden file holds: the user's message, with one key of its JSON a line."""
    said = text_of(inputs).partition("--- user\n\n")[2]
    lines = []
    for line in said.splitlines():
        as_json = line.startswith(('{"', '[{"'))
        lines.append(json.dumps(json.loads(line), indent=1, ensure_ascii=False) if as_json else line.rstrip())
    return "\n".join(lines) + "\n"


def main(names):
    DATA.mkdir(exist_ok=True)
    for name in names or registered(KERNELS):
        (DATA / f"{name}.txt").write_text(golden_text(briefed_at_default(name)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
