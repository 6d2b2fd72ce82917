"""The two questions put to a model, as DSPy signatures. The docstrings are the instructions; edit them with care.

Source: which inputs go in and which outputs come back is figures 3 and 4 of SwizzlePerf (arXiv 2508.20258,
appendix A.1); the wording is new.
"""

from __future__ import annotations

from typing import Any

import dspy
import pydantic


class Shortcoming(pydantic.BaseModel):
    """What one earlier attempt got wrong, or left on the table."""

    attempt: int
    shortcoming: str


class AnalyzeMemory(dspy.Signature):
    """Study how a GPU kernel reuses memory, for an engineer who will reorder its workgroups and change nothing else.

    Say which tensors are read by more than one workgroup and along which axis of the tile grid those workgroups lie;
    what a workgroup reads once and never shares; how far apart in time two uses of the same data are; and how many
    bytes a set of workgroups must keep in cache so that none of its shared data is fetched twice. Use the numbers of
    the access summary. Propose no code.
    """

    kernel_source: str = dspy.InputField(desc="Triton source of the kernel")
    access_summary: dict[str, Any] = dspy.InputField(desc="grid, bytes and reuse of each tensor, work, who shares what")
    locality_analysis: str = dspy.OutputField(desc="at most 300 words")


class _Proposal(dspy.Signature):
    """Fields of both proposals, which a template describes otherwise in part."""

    original_kernel: str = dspy.InputField(desc="Triton source of the kernel, not yet swizzled")
    bottleneck_report: dict[str, Any] = dspy.InputField(
        desc="objective, best so far, simulated figures of the launch order"
    )
    memory_analysis: str = dspy.InputField(desc="how the kernel reuses memory")
    hardware: str = dspy.InputField(desc="the GPU and how it schedules workgroups")
    language: str = dspy.InputField(desc="the language in which a swizzle is written")
    history: list[dict[str, Any]] = dspy.InputField(desc="earlier attempts with verdict and figures, oldest first")

    reasoning: str = dspy.OutputField(desc="think step by step about where the misses come from")
    critique: list[Shortcoming] = dspy.OutputField(
        desc="one entry for each attempt of the history; [] if there is none"
    )
    rationale: str = dspy.OutputField(desc="why the new swizzle will do better, in two or three sentences")


class ProposeSwizzle(_Proposal):
    """Find a remapping of workgroup ids (a swizzle) by which a GPU kernel does better in the objective of the report.

    The hardware starts workgroups in the order of their ids and decides where each runs; that cannot be changed. What
    can be changed is which tile a workgroup computes. A swizzle reads the hardware's id and computes the id, or the
    tile coordinates, to work on. Workgroups that share data should find it in the same cache at about the same time.

    Rules. The swizzle is a bijection: each tile is computed exactly once, also where the sizes do not divide evenly.
    It is written in the small language described in the input, and nothing else: no imports, functions, arrays or
    calls that are not listed. It is checked exhaustively before it is scored; a candidate that is no bijection, or
    repeats the permutation of an earlier attempt, scores nothing.

    Read the bottleneck report and the history first. Criticize every earlier attempt before you write a new one, and
    do not make small variations of what did not help: if an idea has failed twice, take another. Prefer a form that
    holds for every grid over one that fits this grid alone. If you expect no better order than the best so far, answer
    with the one word done in place of the swizzle.
    """

    swizzle: str = dspy.OutputField(desc="the statements of the swizzle, with no fence and no comment around them")


class ProposeTemplate(_Proposal):
    """Turn the best idea for a GPU kernel's order of workgroups into a template whose parameters are searched.

    The hardware starts workgroups in the order of their ids and decides where each runs; that cannot be changed. What
    can be changed is which tile a workgroup computes. A swizzle reads the hardware's id and computes the id, or the
    tile coordinates, to work on. Workgroups that share data should find it in the same cache at about the same time.

    A template is a swizzle in which the numbers that matter are parameters with ranges. Say in it what kind of order
    helps, and leave to the search how large, how wide and how many. A few parameters that change the permutation are
    worth more than many that do not; ranges wide enough to hold the best value, conditions that keep out what cannot
    be a bijection.

    Rules. For every combination that its conditions allow, the template is a bijection: each tile is computed exactly
    once, also where the sizes do not divide evenly. It is written in the small language described in the input, and
    nothing else: no imports, functions, arrays or calls that are not listed. All combinations that are tried are
    checked exhaustively before they are scored.

    Read the bottleneck report and the history first; it holds earlier templates with the landscape of their
    parameters. Criticize each: which parameters mattered, which made no difference, where the best value lay at the
    end of its range. Widen or drop parameters accordingly, and take another idea where the landscape is flat. If you
    expect no better order than the best so far, answer with the one word done in place of the template.
    """

    language: str = dspy.InputField(desc="the language in which a template is written")
    history: list[dict[str, Any]] = dspy.InputField(desc="earlier templates with verdict and landscape, oldest first")
    critique: list[Shortcoming] = dspy.OutputField(
        desc="one entry for each attempt of the history, about its parameters; [] if there is none"
    )
    rationale: str = dspy.OutputField(desc="what each parameter decides, in two or three sentences")
    template: str = dspy.OutputField(
        desc="the template, with no fence and no comment around it; a swizzle without parameters is taken as well"
    )


PICTURE = dspy.InputField(
    desc="left: which XCD computes each tile; right: misses of each tile, dark is many; of the best attempt so far"
)
ProposeSwizzleSeeing = ProposeSwizzle.append("picture", PICTURE, dspy.Image)
ProposeTemplateSeeing = ProposeTemplate.append("picture", PICTURE, dspy.Image)
