"""Does the ranking recommend what a model wrote over the best family and the best of a search, at 60 evaluations each?

The texts were written from the first question alone, as `optimize --proposer direct` asks it. Families and templates
are the best that the same commands found in 60 full replays of either, for uneven work on an MI300X.
"""

import pytest

from swizzle_sim.language import family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.advice import advise_run, spoken
from swizzle_sim.search.judge import Judge
from swizzle_sim.workload.kernels import kernel
from xcd_model import gpu

# 64 tiles an XCD by 38 programs: 12 of the longest alone, and 26 pairs of equal sum
PERSISTENT = """
x = pid % 8
j = pid // 8
k = max(j - 38, 0)
a = max(j - 26, 0)
r = tl.where(j < 26, 12 - min(j, 25) // 4, tl.where(j < 38, 15 - min(a, 11) // 4, k // 4))
h = tl.where(j < 26, j % 4, tl.where(j < 38, a % 4, k % 4 + tl.where(k >= 24, 2, 0)))
pid_m = r
pid_n = 4 * x + h
"""
# 128 tiles: three whose ranks have one sum, and the 14 lightest
LONGER = """
x = pid % 8
q = pid // 8
r = q // 38
i = q % 38
c = tl.where(i < 19, 37 - 2 * i, 74 - 2 * i)
rank = tl.where(r == 0, i, tl.where(r == 1, 38 + (i + 19) % 38, tl.where(r == 2, 76 + c, 114 + i)))
pid_m = 31 - rank // 4
pid_n = 4 * x + rank % 4
"""
# one key head of every sequence an XCD, the longest sequence first: its order in the digits of two numbers
PACKED = """
x = pid % 8
j = pid // 8
s = j // 128
low = (19323507 >> (4 * min(s, 6))) & 15
mid = (149725104 >> (4 * min(max(s - 7, 0), 6))) & 15
seq = tl.where(s < 7, low, tl.where(s < 14, mid, tl.where(s == 14, 5, 4)))
pid_x = 31 - (j // 4) % 32
pid_y = seq * 32 + 4 * x + j % 4
"""


@pytest.mark.parametrize(
    ("name", "sizes", "text", "best"),
    [
        (
            "attention_persistent",
            {},
            PERSISTENT,
            ("contiguous+paired(size=32)", "panel_snake(width=1)"),
        ),
        ("attention_persistent", {"S": 8192}, LONGER, ("contiguous+paired(size=32)", "panel_snake(width=8)")),
        ("attention_varlen", {}, PACKED, ("chunked(chunk=64)+hilbert",)),
    ],
)
def test_the_order_of_a_model_is_recommended(name, sizes, text, best):
    scorer = Scorer(kernel(name, **sizes), gpu("mi300x"))
    judge = Judge(scorer)
    texts = [family("identity"), *map(family, best), text]
    attempts = [judge.judge(one, number) for number, one in enumerate(texts)]
    assert judge.ranking.order(attempts)[0] is attempts[-1]
    advice = advise_run(scorer, judge.ranking, attempts)
    assert advice.verdict == "measure" and advice.order == spoken(attempts[-1].name)
