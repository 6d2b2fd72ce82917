"""Is a winner kept as a template that is proved, and tried by the families on the next kernel?"""

import pytest

from swizzle_sim.language import Swizzle
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.kept import keep, kept_candidates, read_kept, write_kept
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.workload.kernels import kernel

BANDS = """\
xcd = pid % 8
local = pid // 8
new = xcd * (num_pids // 8) + local
for i in range(3):
    new = new + 0
pid_m = new // (4 * num_pid_n) * 4 + new % (4 * num_pid_n) % 4
pid_n = new % (4 * num_pid_n) // 4
"""


@pytest.fixture
def template(small, mi300x):
    scorer = Scorer(small, mi300x, replay="lockstep")
    return keep(Judge(scorer).judge(BANDS), scorer, "bands")


def test_literals_become_parameters_where_the_text_stays_a_bijection(template, small):
    (size,) = template.ranges
    assert size.values == (1, 2, 4, 8, 16), "those near 4, up to the rows of the grid"
    assert "pid % num_xcds" in template.body and "range(3)" in template.body
    for value in size.values:
        text = template.source({size.name: value})
        assert Swizzle.parse(text).verify(small.grid, 8, lattice=[]).bijective


def test_the_text_as_found_is_among_its_candidates(template, small, mi300x):
    texts = [one.swizzle for one in kept_candidates([template], small, mi300x)]
    orders = [one.permutation(small.grid, 8, small.problem).tolist() for one in texts]
    assert Swizzle.parse(BANDS).permutation(small.grid, 8, small.problem).tolist() in orders


def test_the_families_try_what_is_kept_on_the_next_kernel_and_resume_to_the_same(
    template, mi300x, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    write_kept(template)
    assert read_kept() == [template]
    other = kernel("transpose", M=512, N=256)
    run = optimize(other, mi300x, tmp_path / "run", replay="lockstep")
    tried = [one for one in run.attempts if one.verdict.get("template") == "bands"]
    assert [one.number for one in tried] == [1, 2, 3, 4, 5] and any(one.score for one in tried)
    (tmp_path / "kept" / "bands.txt").unlink()
    again = optimize(other, mi300x, tmp_path / "run", replay="lockstep", resume=True)
    assert [one.source for one in again.attempts] == [one.source for one in run.attempts]


def test_a_searched_template_is_kept_as_it_is(small, mi300x):
    scorer = Scorer(small, mi300x, replay="lockstep")
    text = "template rows(size: 1..4)\n    pid = pid * 1 + size - size\n"
    best = Judge(scorer).judge("pid = num_pids - 1 - pid")
    found = keep(type(best)(**{**vars(best), "verdict": {**best.verdict, "template": text}}), scorer, "mine")
    assert (found.name, found.ranges[0].values) == ("mine", (1, 2, 3, 4))
