"""Are counts, fields and memory beside a tile told apart from the tile, one small function a case?"""

import ast

import pytest

from swizzle_sim.testing.run import check_file
from swizzle_sim.triton_source.definitions import Definitions
from tests.testing.test_constructs import results

LAST_AXIS_FIRST = """
@triton.jit
def norm(p, N: tl.constexpr, M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_M: tl.constexpr):
    across = tl.cdiv(M, BLOCK_M)
    for tile in tl.range(tl.program_id(0), tl.cdiv(N, BLOCK_N) * across, tl.num_programs(0)):
        pid_n = tile // {by}
        pid_m = tile % {by}
        tl.store(p + pid_n * N + pid_m, 0.0)
"""


def test_counts_of_a_product_belong_to_the_axes_that_their_names_say(written):
    assert results(written(LAST_AXIS_FIRST.format(by="across")))["norm"].status == "passed"
    assert results(written(LAST_AXIS_FIRST.format(by="tl.cdiv(N, BLOCK_N)")))["norm"].status == "failed"


HIDDEN = """
class Order:
    @triton.jit
    def coordinates(self, tile_id):
        num_pid_m, num_pid_n = tl.cdiv(self.M, self.block_m), tl.cdiv(self.N, self.block_n)
        in_group = self.group_size_m * num_pid_n
        first = tile_id // in_group * self.group_size_m
        group_size_m = tl.minimum(num_pid_m - first, self.group_size_m)
        within = tile_id % in_group
        return first + within % group_size_m, within // {by}
"""


def test_a_field_of_the_name_of_a_local_is_another_value(written):
    found = results(written(HIDDEN.format(by="group_size_m")))["Order.coordinates"]
    assert found.status == "passed", found.message
    assert "own_group_size_m=1,2,4" in found.guessed
    found = results(written(HIDDEN.format(by="self.group_size_m")))["Order.coordinates"]
    assert found.status == "failed", found.message


def test_a_name_that_is_made_of_itself_ends_its_expansion():
    function = ast.parse("def f(n):\n    a = b + 1\n    b = a + n\n    c = n + n\n    return c\n").body[0]
    definitions = Definitions(function)
    assert definitions.meaning_of("a") is None
    assert ast.unparse(definitions.meaning_of("c")) == "n + n"


RANGE = """
class Order:
    @triton.jit
    def persistent_range(self):
        total = tl.cdiv(self.M, self.block_m) * tl.cdiv(self.N, self.block_n)
        pid = tl.program_id(0)
        pid = pid % 8 * (self.num_sms // 8) + min(pid % 8, self.num_sms % 8) + pid // 8
        return pid, total, self.num_sms
"""


def test_a_count_that_is_returned_beside_the_id_is_no_coordinate(written):
    found = results(written(RANGE))["Order.persistent_range"]
    assert found.status == "passed", found.message
    assert found.guessed == "num_sms=num_pids"


BESIDE_MEMORY = """
@triton.jit
def scaled(scale, lens, out, M, N, BLOCK_M, BLOCK_N, GROUP_M: tl.constexpr):
    factor = tl.load(scale)
    if tl.load(lens) == 0:
        return
    rows, cols = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for tile_id in range(tl.program_id(0), rows * cols, tl.num_programs(0)):
        first = tile_id // (4 * cols) * 4
        size = min(rows - first, 4)
        pid_m = first + tile_id % (4 * cols) % size
        pid_n = tile_id % (4 * cols) // {by}
        tl.store(out + pid_m * N + pid_n, factor)
"""


def test_a_tile_that_is_known_without_memory_is_read_past_it(written):
    found = results(written(BESIDE_MEMORY.format(by="size")))["scaled"]
    assert found.verdict == "tested" and "supposing that line 8 leaves no workgroup out" in found.message
    plain = BESIDE_MEMORY.replace("    if tl.load(lens) == 0:\n        return\n", "")
    assert results(written(plain.format(by="size")))["scaled"].verdict == "proved"
    assert results(written(BESIDE_MEMORY.format(by="4")))["scaled"].verdict == "refuted"
    assert results(written(BESIDE_MEMORY.format(by="(size + factor)")))["scaled"].status == "skipped"


BATCHED = """
@triton.jit
def batched(out, M, N, BLOCK_M, BLOCK_N):
    batch = tl.program_id(0)
    pid = tl.program_id(1)
    num_pid_m = tl.cdiv(M, BLOCK_M)
    num_pid_n = tl.cdiv(N, BLOCK_N)
    pid_m = pid // {by}
    pid_n = pid % num_pid_n
    tl.store(out + batch * M * N + pid_m * N + pid_n, pid + 1)
"""


def test_a_tile_of_one_axis_is_checked_on_that_axis(written):
    [found] = check_file(written(BATCHED.format(by="num_pid_n")), function="batched")
    assert found.verdict == "proved", found.message
    [found] = check_file(written(BATCHED.format(by="(num_pid_n + 1)")), function="batched")
    assert found.verdict == "refuted", found.message


GROUPS = """
{note}
@triton.jit
def grouped(out, G, M, N, BLOCK_M, BLOCK_N):
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    for at in range(tl.program_id(0), G * tiles_m * tiles_n, tl.num_programs(0)):
        group = at // (tiles_m * tiles_n)
        local = at % (tiles_m * tiles_n)
        pid_m = local // tiles_n + 0 * (at % 8 + at // 8)
        pid_n = local % tiles_n
        tl.store(out + group + pid_m * N + pid_n, at)
"""


def test_a_loop_over_more_tiles_than_two_coordinates_count_is_no_failure(written):
    found = results(written(GROUPS.format(note="")))["grouped"]
    assert found.status == "skipped"
    assert "answer=... tiles=..." in found.advice
    note = '# swizzle: answer=group,pid_m,pid_n tiles="G, cdiv(M, BLOCK_M), cdiv(N, BLOCK_N)"'
    found = results(written(GROUPS.format(note=note)))["grouped"]
    assert found.status == "passed", found.message


def test_what_returns_texts_or_nothing_is_no_remap(written):
    path = written(
        """
        def index_name(pid, names):
            at = pid % 8 * 4 + pid // 8
            if at in names:
                return None
            return f"index_{at}"
        """
    )
    assert results(path) == {}


def test_a_function_imported_under_the_languages_own_name_is_that(written):
    path = written(
        """
        from flydsl.expr.arith import min, ceildiv as cdiv
        def exact(pid, num_pids):
            return pid % 8 * (num_pids // 8) + min(pid % 8, num_pids % 8) + pid // 8
        """
    )
    assert results(path)["exact"].verdict == "proved", results(path)


@pytest.mark.parametrize(("stop", "status"), [("rows * cols - REST", "passed"), ("rows * cols * 2", "skipped")])
def test_a_loop_over_the_first_tiles_is_read_as_one_over_all(written, stop, status):
    text = GROUPS.format(note="").replace("G * tiles_m * tiles_n", stop.replace("rows * cols", "tiles_m * tiles_n"))
    text = text.replace("out, G,", "out, REST,")
    assert results(written(text))["grouped"].status == status
