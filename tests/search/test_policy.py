"""Does a policy take the fewest orders and the smallest rule, and do its files say what was chosen?"""

import importlib.util
import json
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from swizzle_sim.language import Grid, Swizzle, family
from swizzle_sim.language.lattice import kind_of_grid
from swizzle_sim.search.policy.emit import kernel_text, write_policy
from swizzle_sim.search.policy.rule import LOST, Branch, Leaf, Order, choose, decided, fewest, grown, proved_orders
from swizzle_sim.search.policy.sizes import LAUNCHED, Case, grid_of, judged, table_of_calls
from swizzle_sim.search.sweep import point_of
from swizzle_sim.workload.kernels import kernel
from xcd_model.errors import SearchError, SizeError, UnknownName

SPECS = ("column", "contiguous+group_m(size=4)", "contiguous+column")
ORDERS = [Order(LAUNCHED, ""), *(Order(spec, family(spec)) for spec in SPECS)]
WORDS = ("gemm", "BLOCK_M=64", "BLOCK_N=64", "--no-compile", "--backend", "serial")
FEW = ("--swizzle", "column", "--swizzle", "row", "--swizzle", "contiguous+column", "--finalists", "2")


def case(calls=1.0, **values):
    return Case(str(values), values, calls, "compute", "tiles", {})


@pytest.fixture(scope="module")
def score():
    from xcd_model import gpu

    work, device = kernel("gemm", M=512, N=512, K=128, BLOCK_M=64, BLOCK_N=64), gpu("mi300x")
    row = judged(point_of(work, device, [Swizzle.parse(family(s), name=s) for s in SPECS], "lockstep"))
    from swizzle_sim.pricing.scores import Score

    return Score.from_dict(row["scores"][LAUNCHED])


def scored(score, rates, calls=1.0, **values):
    scores = {one.name: replace(score, l2_hit_rate=rate) for one, rate in zip(ORDERS, rates, strict=True)}
    return replace(case(calls, **values), scores=scores)


def test_the_fewest_orders_are_those_of_a_search_through_all_sets():
    random = np.random.default_rng(0)
    for _ in range(50):
        regret = np.round(random.exponential(2.0, (9, 5)), 1)
        regret -= regret.min(1, keepdims=True)
        calls = random.integers(1, 9, 9).astype(float)
        found = fewest(regret, calls, 1.0)
        sets = [one for n in range(1, 6) for one in combinations(range(5), n) if (regret[:, one].min(1) <= 1).all()]
        assert len(found) == len(sets[0]) and tuple(found) in sets
        same = [one for one in sets if len(one) == len(found)]
        least = min(calls @ regret[:, one].min(1) for one in same)
        assert calls @ regret[:, found].min(1) == least or found == [0]


def test_a_tree_is_the_smallest_that_loses_nothing():
    cases = [case(M=m, K=k, num_pids=m // 64) for m, k in product((64, 128, 256, 512), (64, 128, 192))]
    wanted = [int(one.values["M"] > 128) + int(one.values["M"] > 128 and one.values["K"] % 128 == 0) for one in cases]
    regret = np.where(np.arange(3) == np.array(wanted)[:, None], 0.0, 5.0)
    rule = grown(cases, regret, 1.0, 8, 3)
    assert [decided(rule, one.values) for one in cases] == wanted
    assert isinstance(rule, Branch) and {rule.condition} <= {"M <= 128", "num_pids <= 2"}
    assert sorted((isinstance(rule.then, Leaf), isinstance(rule.other, Leaf))) == [False, True]
    assert grown(cases, regret[:, [0]] * 0, 1.0, 8, 3) == Leaf(0)


def test_calls_weigh_where_the_depth_does_not_do():
    cases = [case(calls, M=m) for calls, m in ((1, 64), (1, 128), (50, 256), (1, 512))]
    regret = np.array([[0.0, 9.0], [9.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    rule = grown(cases, regret, 1.0, 8, 1)
    assert decided(rule, cases[2].values) == 0 and decided(rule, cases[3].values) == 1
    assert grown(cases, regret, 1.0, 8, 0) == Leaf(0)


def test_the_launch_order_stays_where_it_will_do(score, mi300x):
    cases = [scored(score, (0.5, 0.501, 0.4, 0.3), M=m) for m in (64, 128)]
    found = choose("gemm", mi300x, "lockstep", cases, ORDERS)
    assert found.rule == Leaf(0) and found.orders == (ORDERS[0],) and found.measure == ("", "")
    assert found.mean_regret() == (pytest.approx(100 * (1 - 0.5 / 0.501)), 0) and found.matters == (True, True)


def test_an_order_that_is_none_somewhere_is_not_chosen_there(score, mi300x):
    first, second = scored(score, (0.5, 0.9, 0.1, 0.1), M=64), scored(score, (0.5, 0.9, 0.1, 0.1), M=128)
    second = replace(second, scores={name: one for name, one in second.scores.items() if name != "column"})
    found = choose("gemm", mi300x, "lockstep", [first, second], ORDERS)
    assert found.rule == Branch("M <= 64", Leaf(1), Leaf(0)) and found.regret[1][1] == LOST
    assert "is not shown to rank" in found.measure[0] and not found.measure[1]


def test_orders_are_proved_for_every_launch_or_left_out(mi300x):
    texts = [(spec, family(spec)) for spec in (*SPECS, "contiguous_naive", "hilbert")]
    orders, refused = proved_orders(texts, "tiles", mi300x)
    assert [one.name for one in orders[1:4]] == list(SPECS) and not any(one.where for one in orders[:4])
    assert orders[4].where == "num_pids % num_xcds == 0 or num_pids == 1" and refused == ["hilbert"]


def test_the_files_give_each_size_its_order(score, mi300x, tmp_path):
    naive = Order("naive", family("contiguous_naive"), "num_pids % num_xcds == 0")
    orders = [*ORDERS, naive]
    cases = []
    for rows, columns in ((4, 4), (3, 5), (16, 4), (9, 7)):
        rates = (0.5, 0.9, 0.1, 0.1) if rows < 9 else (0.5, 0.1, 0.1, 0.1)
        counts = {"num_pids": rows * columns, "num_pid_m": rows, "num_pid_n": columns}
        one = scored(score, rates, M=64 * rows, N=64 * columns, **counts)
        cases.append(replace(one, scores={**one.scores, "naive": replace(score, l2_hit_rate=0.9 if rows > 8 else 0.1)}))
    found = choose("gemm", mi300x, "lockstep", cases, orders)
    assert {one.name for one in found.orders} == {LAUNCHED, "column", "naive"}
    whole = Swizzle.parse(kernel_text(found))
    assert {"policy.txt", "policy.py", "policy_triton.py", "policy.hpp", "policy.png"} <= {
        *write_policy(found, tmp_path)
    }
    spec = importlib.util.spec_from_file_location("policy_written", tmp_path / "policy.py")
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    for i, one in enumerate(cases):
        sizes = {"M": one.values["M"], "N": one.values["N"]}
        tiles = (one.values["num_pid_m"], one.values["num_pid_n"])
        grid, order = Grid((one.values["num_pids"],), tiles), found.orders[found.chosen[i]]
        assert not (order.where and grid.num_pids % 8)  # there it is the launch order
        alone = Swizzle.parse(order.source or "pid = pid").permutation(grid, 8)
        assert np.array_equal(whole.permutation(grid, 8, sizes), alone), order
        assert written.heuristic(lambda args: {})(dict(one.values)) == found.chosen[i]
    assert (
        "struct policy_tile" in (tmp_path / "policy.hpp").read_text()
        and "int policy_order(" in (tmp_path / "policy.hpp").read_text()
    )


def test_a_grid_and_a_table_of_calls(tmp_path):
    known = {"M": 1, "N": 1, "K": 1}
    assert grid_of(known, "M+N,K", [[1, 2], [3]]) == [{"M": 1, "N": 1, "K": 3}, {"M": 2, "N": 2, "K": 3}]
    assert len(grid_of(known, "M,N", [[1, 2, 3]])) == 9
    table = tmp_path / "calls.csv"
    table.write_text("M,N,calls\n64,64,3\n128,64,1\n64,64,2\n")
    assert table_of_calls(table, known) == [({"M": 64, "N": 64}, 5.0), ({"M": 128, "N": 64}, 1.0)]
    for text, error, said in (
        ("M,Q\n1,2\n", UnknownName, "Q"),
        ("M,calls\n64,-1\n", SizeError, "positive"),
        ("M\nbig\n", SearchError, r"calls.csv:2"),
        ("", SearchError, "no rows"),
    ):
        table.write_text(text)
        with pytest.raises(error, match=said):
            table_of_calls(table, known)


def test_a_policy_resumes_and_says_what_it_chose(tmp_path, monkeypatch, typed):
    over = ("--over", "M,K", "--values", "256,512", "--values", "128,256")
    first = typed("policy", *WORDS, *FEW, *over, "-o", "out")
    assert not first.code and "written: out/" in first.out and "regret [%]" in first.out, first.out
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"policy.py", "policy.txt", "test_policy.py", "policy.json", "policy.png", "sweep.sqlite"} <= files
    monkeypatch.setattr("swizzle_sim.search.policy.sizes.judged", lambda *_, **__: pytest.fail("scored again"))
    again = typed("policy", *WORDS, *FEW, *over, "--resume", "out", "--json")
    assert not again.code and {one["calls"] for one in again.json["sizes"]} == {1.0} and len(again.json["sizes"]) == 4
    kept = json.loads((tmp_path / "out" / "policy.json").read_text())
    assert all(again.json[key] == value for key, value in kept.items())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say which sizes"),
        (("--over", "M", "--values", "64", "--calls", "calls.csv"), "say which sizes"),
        (("--over", "Q", "--values", "64"), "Q"),
        (("--over", "M,N", "--values", "64", "--values", "64", "--values", "64"), "3 --values for the 2 parts"),
        (("--calls", "none.csv"), "cannot be read as CSV"),
    ],
)
def test_what_cannot_be_is_said(words, said, typed):
    answer = typed("policy", *WORDS, *words)
    assert answer.code == 2 and said in answer.err


@pytest.mark.parametrize(
    ("grid", "specs"),
    [(Grid((48,), (6, 8)), ("column", "contiguous")), (Grid((6, 8)), ("column", "contiguous")),
     (Grid((4, 6, 2)), ("boxes(x=2, y=2, z=2)", "contiguous"))],
)  # fmt: skip
def test_orders_of_tiles_and_of_ids_are_one_text(grid, specs, score, mi300x):
    orders = [ORDERS[0], *(Order(spec, family(spec)) for spec in specs)]
    cases = []
    for best, rows in zip(orders, (16, 32, 48), strict=True):
        scores = {one.name: replace(score, l2_hit_rate=0.9 if one is best else 0.1) for one in orders}
        cases.append(replace(case(ROWS=rows), kind=kind_of_grid(grid), scores=scores))
    found = choose("any", mi300x, "lockstep", cases, orders)
    whole = Swizzle.parse(kernel_text(found))
    for one, order in zip(cases, orders, strict=True):
        alone = Swizzle.parse(order.source or "pid = pid").permutation(grid, 8)
        assert np.array_equal(whole.permutation(grid, 8, one.values), alone), order.name
