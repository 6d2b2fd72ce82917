"""Does an explanation name a proved domain, the failing problem and a repair that is proved?"""

import pytest

from swizzle_sim.language import Swizzle
from swizzle_sim.testing import as_candidate, try_points
from swizzle_sim.testing.directive import options_of_words
from swizzle_sim.testing.explain import explain, explained
from swizzle_sim.testing.run import check_file
from swizzle_sim.testing.trials import points_of

NAIVE = "xcd = pid % num_xcds\npid = xcd * (num_pids // num_xcds) + pid // num_xcds\n"
GROUPED = """\
group = min(4, num_pid_m)
per = group * num_pid_n
pid_m = pid // per * group + pid % per % group
pid_n = pid % per // group
"""


def lines_of(text, **sizes):
    candidate, options = as_candidate(text, sizes)
    return explain(candidate, try_points(candidate, points_of(candidate, options)), options)


@pytest.mark.parametrize(
    ("text", "domain", "part"),
    [
        (NAIVE, "num_pids % num_xcds == 0", "min(xcd, num_pids % num_xcds)"),
        (GROUPED, "num_pid_m % 4 == 0", "min(num_pid_m - (pid // per) * group, group)"),
    ],
)
def test_the_domain_and_the_repair(text, domain, part):
    lines = lines_of(text)
    assert f"proved where {domain}" in lines
    assert lines[-1].startswith("repaired, proved for every grid, up to 2**31 - 1 workgroups")
    assert part in lines[-1]
    repaired = "\n".join(line.strip() for line in lines[-1].splitlines()[1:])
    assert not lines_of(repaired), "what is right needs no explanation"
    assert Swizzle.parse(repaired)


def test_what_cannot_be_repaired_says_so():
    assert lines_of("pid = pid // 2")[-1] == "no repair was found that is proved"


KERNEL = """
@triton.jit
def kernel(out, M, N, BLOCK_M, BLOCK_N, CHUNK: tl.constexpr):
    rows, cols = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    pid = pid % CHUNK * (rows * cols // CHUNK) + pid // CHUNK
    pid_m = pid // cols
    pid_n = pid % cols
    tl.store(out + pid_m * N + pid_n, 1)
"""


def test_a_kernel_is_explained_in_counts_of_its_tiles(written):
    path = written(KERNEL)
    over = options_of_words(["BLOCK_M=128", "BLOCK_N=64", "CHUNK=8"])
    (found,) = check_file(path, over)
    said = explained(found, over).message
    assert found.verdict == "refuted" and said.startswith(found.message)
    assert "proved where num_pids % 8 == 0" in said
    assert "first fails at M=" in said and "with tiles of 128 x 64" in said
    assert "min(pid % CHUNK, rows * cols % CHUNK)" in said.replace("(rows * cols)", "rows * cols")
