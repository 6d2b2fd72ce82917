"""The report of a run whose best candidate was written to harm who reads it."""

import ast
import re
from html.parser import HTMLParser

import pytest

from swizzle_benchmarks.suite.gemm import gemm
from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.report import write_report
from swizzle_sim.search.history import Attempt, History
from swizzle_sim.search.loop import about_run
from xcd_model import gpu

BEST = "contiguous+group_m(size=4)"
NASTY = (
    "</text></svg><script>alert(1)</script><svg onload=alert(2)>",
    "</pre></style></title><img src=x onerror=alert(3)><a href='javascript:alert(4)'>",
    "]]><!-- --!> &lt;script&gt; &#60;script&#62; {{ 7 * 7 }} {% for x in y %} ${alert(5)}",
    '""" + __import__("os").system("true") + """ */ int main() { // \\',
    "\u202egnihtemos\u202c \u2066isolated\u2069 \u200bzero \x1b]0;owned\x07 \x85 \u2028 \ufeff",
    "$\\frac{1}{0}$ $x_{ %s %n \\N{BELL} \r\n# next line",
)
COLOURS = set("kcsmf")
HARMFUL = {c for c in map(chr, range(0x3000)) if not c.isprintable()} - {"\n", "\t"}


class Tags(HTMLParser):
    """Elements of a page, with the names of their attributes."""

    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "span" and len(attrs) == 1 and attrs[0][0] == "class" and attrs[0][1] in COLOURS:
            return  # of a piece of code
        self.seen.append((tag, tuple(sorted(key for key, _ in attrs))))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Folder of a run whose best candidate has a name, a text, a proposer and a critique."""
    scorer = Scorer(gemm(M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64), gpu("mi300x"), replay="lockstep")
    scored = {spec: scorer.score(Swizzle.parse(family(spec))) for spec in ("identity", BEST)}

    def made(text):
        history = History.create(
            tmp_path_factory.mktemp("runs") / "run", about_run(scorer, "swizzle-sim optimize gemm")
        )
        comment = "".join(f"# {line}\n" for line in re.split(r"[\r\n]+", text.replace("\0", "")))
        for number, (spec, said) in enumerate({"identity": "identity", BEST: text}.items()):
            swizzle = Swizzle.parse((comment if number else "") + family(spec))
            facts = scorer.verify(swizzle).as_dict() | ({"code": said, "domain": said} if number else {})
            one = Attempt(
                number=number,
                name=said,
                source=swizzle.source,
                proposer=said,
                verdict=facts,
                score=scored[spec],
                critique=said,
            )
            history.append(one)
        history.set_state("finished")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("swizzle_sim.report.pictures.files", lambda *given: {})
            return write_report(history).parent

    return made


def test_a_hostile_best_candidate_adds_no_element_no_code_and_no_direction(report):
    plain, hostile = report("plain"), report(" ".join(NASTY))
    page = (hostile / "report.html").read_text(encoding="utf-8")
    assert "group_m" in page or "pid_m" in page  # it is the best, and its text is shown
    assert Tags(page).seen == Tags((plain / "report.html").read_text(encoding="utf-8")).seen
    assert not HARMFUL & set(page) and "{{ 7 * 7 }}" in page
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
    kernel = ast.parse((hostile / "best_triton.py").read_text(encoding="utf-8"))
    assert ast.dump(kernel) == ast.dump(ast.parse((plain / "best_triton.py").read_text(encoding="utf-8")))
    for name in ("best_triton.py", "best.hip"):
        text = (hostile / name).read_text(encoding="utf-8")
        assert not HARMFUL & set(text) and "main" not in text
    assert (hostile / "best.hip").read_text() == (plain / "best.hip").read_text()
