"""Is a template read as it is written, and is what it stands for the family it came from?"""

import itertools

import numpy as np
import pytest

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.judge import Judge
from swizzle_sim.search.kept import keep, kept_candidates, read_kept, write_kept
from swizzle_sim.search.strategies.families import optimize
from swizzle_sim.search.templates import TemplateSpace, family_template, family_templates, load_templates, read_template
from swizzle_sim.workload.kernels import kernel
from xcd_model.errors import LanguageError, SearchError, UnknownName

TEXT = """\
# a comment before it
template windowed_chunks(chunk: 1..512, window: powers 1..64)   requires num_pids >= num_xcds
    requires chunk * window <= num_pids
    block = num_xcds * chunk
    mapped = (num_pids // block) * block
    if pid < mapped:
        local = pid // num_xcds
        pid = (local // chunk) * block + (pid % num_xcds) * chunk + local % chunk
    group = min(window, num_pid_m)
    group_pids = group * num_pid_n
    first = (pid // group_pids) * group
    length = min(num_pid_m - first, group)
    step = pid % group_pids
    pid_m = first + step % length
    pid_n = step // length
"""


def test_the_template_of_the_documentation(small, mi300x):
    template = read_template(TEXT)
    assert [one.name for one in template.ranges] == ["chunk", "window"]
    assert template.ranges[1].values == (1, 2, 4, 8, 16, 32, 64)
    assert template.requires == ("num_pids >= num_xcds", "chunk * window <= num_pids")
    space = TemplateSpace(template, [small], mi300x)
    assert not space.allows({"chunk": 256, "window": 2}) and space.allows({"chunk": 128, "window": 2})
    values = {"chunk": 16, "window": 4}
    mine = Swizzle.parse(template.source(values)).permutation(small.grid, 8)
    its = Swizzle.parse(family("windowed(chunk=16, window=4)")).permutation(small.grid, 8)
    assert np.array_equal(mine, its)


def test_family_templates_are_the_families(small, mi300x):
    for template in family_templates(small, mi300x):
        try:
            space = TemplateSpace(template, [small], mi300x)
        except SearchError:
            continue
        for values in itertools.islice(space.points(), 1, 200, 67):
            mine = Swizzle.parse(template.source(values)).permutation(small.grid, 8, small.problem)
            its = Swizzle.parse(family(template.title(values))).permutation(small.grid, 8, small.problem)
            assert np.array_equal(mine, its), template.title(values)


def test_text_of_a_template_reads_back(small, mi300x):
    for template in [read_template(TEXT), *family_templates(small, mi300x)]:
        again = read_template(template.text)
        assert (again.ranges, again.requires, again.body) == (template.ranges, template.requires, template.body)


def test_nothing_of_a_template_is_executed(tmp_path):
    for hostile in ("__import__('os')", "open('x')", "(lambda: 0)()", "[].append(1)"):
        with pytest.raises(LanguageError):
            read_template(f"template a(c: 1..2)\n    pid = {hostile} + c\n")
        with pytest.raises(LanguageError):
            read_template(f"template a(c: 1..2) requires {hostile}\n    pid = pid + c\n")


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("pid = pid", "syntax", "not a template"),
        ("template a(c: 1..2\n  pid = c", "syntax", "form"),
        ("template a(c: 1..2)\n", "syntax", "no statements"),
        ("template a(c: 1..2) if c\n  pid = c", "syntax", "requires"),
        ("template a(c: 8..4)\n  pid = c", "parameter", "8 is more than 4"),
        ("template a(c: {})\n  pid = c", "parameter", "no value"),
        ("template a(c: powers 5..7)\n  pid = c", "parameter", "no value"),
        ("template a(c: 1..2, c: 1..2)\n  pid = c", "parameter", "twice"),
        ("template a(c: 1..2, d: 1..2)\n  pid = c", "parameter", "does not use it"),
        ("template a(c: 1..2)\n  c = 1\n  pid = c", "parameter", "does not use it"),
        ("template a(pid: 1..2)\n  pid = pid", "parameter", "name of the grid"),
        ("template a(c: one)\n  pid = c", "parameter", "low..high"),
        ("template a(c: 1..99999999)\n  pid = c", "parameter", "values"),
        ("template a(c: 1..2)\n  x = 1\n\n  pid = foo(c)", "call", "f.txt:4:"),
    ],
)
def test_bad_templates(text, code, told):
    with pytest.raises(LanguageError) as error:
        read_template(text, "f.txt")
    assert error.value.code == code and told in str(error.value)


def test_spaces_with_nothing_in_them(small, mi300x):
    body = "    pid = (pid + c + d) % num_pids\n"
    with pytest.raises(SearchError, match=r"requires c > 9: that excludes all 6") as error:
        TemplateSpace(
            read_template(f"template a(c: 1..2, d: 1..3) requires c > 9 requires d > 1\n{body}"), [small], mi300x
        )
    assert error.value.code == "space"
    with pytest.raises(SearchError, match="c > 1 together with c < 2"):
        TemplateSpace(
            read_template(f"template a(c: 1..2, d: 1..3) requires c > 1 requires c < 2\n{body}"), [small], mi300x
        )
    with pytest.raises(LanguageError, match="'window' has no value here"):
        TemplateSpace(read_template(f"template a(c: 1..2, d: 1..3) requires window > 1\n{body}"), [small], mi300x)
    with pytest.raises(SearchError, match="random combinations"):
        TemplateSpace(read_template(f"template a(c: 1..900, d: 1..900) requires c > 999\n{body}"), [small], mi300x)


def test_files_and_families(tmp_path, small, mi300x):
    path = tmp_path / "two.txt"
    path.write_text(TEXT + "\n" + TEXT.replace("windowed_chunks", "again"), encoding="utf-8")
    assert [one.name for one in load_templates(path)] == ["windowed_chunks", "again"]
    with pytest.raises(LanguageError, match="cannot be read"):
        load_templates(tmp_path / "none.txt")
    with pytest.raises(UnknownName):
        family_template("chunked+nothing", small, mi300x)


# ---- Is a winner kept as a template that is proved, and tried by the families on the next kernel?
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
