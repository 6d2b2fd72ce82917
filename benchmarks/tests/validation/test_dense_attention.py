"""Dense attention as AMD's rocke launches it: orders against their decodes in words, and what a workgroup touches."""

import numpy as np
import pytest

from swizzle_benchmarks.validation.rows import dense_rows
from swizzle_benchmarks.validation.workloads import dense_attention
from swizzle_benchmarks.validation.workloads.from_row import tiles_of, workload
from tests import naive
from xcd_model import gpu, workgroups_per_cu
from xcd_model.errors import UnknownName

ROWS = list(dense_rows())
SIZES = [
    {"B": 1, "H": 32, "HKV": 8, "S": 4096, "D": 128, "CAUSAL": 1, "BM": 256, "BN": 64},
    {"B": 4, "H": 64, "HKV": 64, "S": 2048, "D": 128, "CAUSAL": 0, "BM": 256, "BN": 64},
    {"B": 3, "H": 16, "HKV": 4, "S": 1536, "D": 128, "CAUSAL": 1, "BM": 256, "BN": 64},
]
SMALL = {"B": 2, "H": 4, "HKV": 2, "S": 512, "D": 128, "CAUSAL": 1, "BM": 256, "BN": 64}


def decoded(name, size, id):
    """(batch, head, query block) of one id, by the words of the case study and the kernels' decodes."""
    blocks, heads, shared = size["S"] // 256, size["H"], size["H"] // size["HKV"]
    if name == "launched qb_minor":  # grid (blocks, heads, batch)
        return id // blocks // heads, id // blocks % heads, id % blocks
    if name == "launched hq_minor_swz":  # grid (8 blocks, heads / 8, batch)
        x, y, z = id % (8 * blocks), id // (8 * blocks) % (heads // 8), id // (8 * blocks) // (heads // 8)
        return z, x % 8 * (heads // 8) + y, blocks - 1 - x // 8 if size["CAUSAL"] else x // 8
    if name.endswith("bt_hkv_minor"):
        batch, y, block = id % size["B"], id // size["B"] % heads, id // size["B"] // heads
        head = y % size["HKV"] * shared + y // size["HKV"]
        if size["CAUSAL"] and name.startswith("launched"):
            block = blocks - 1 - block
        return batch, head, folded(block, blocks) if size["CAUSAL"] and name.startswith("persistent") else block
    if name == "persistent qb_major":
        return id % size["B"], id // size["B"] % heads, id // size["B"] // heads
    if name == "persistent hkv_major":
        rest = id // size["B"]
        inside, rest = rest % shared, rest // shared
        return id % size["B"], rest // blocks * shared + inside, folded(rest % blocks, blocks)
    half = size["B"] * heads * blocks // (2 if name.endswith("2phase") else shared)
    cta, phase = id % half, id // half
    if name.endswith("2phase"):
        inside, rest = cta % shared, cta // shared
        low = phase == 0
    else:
        inside, rest = cta % 2 * (shared // 2) + phase % (shared // 2), cta // 2
        low = phase < shared // 2
    batch, rest = rest % size["B"], rest // size["B"]
    pair = rest // size["HKV"]
    return batch, rest % size["HKV"] * shared + inside, pair if low else blocks - 1 - pair


def folded(block, blocks):
    """Lower half upwards, then from the last block down."""
    return block if block < blocks // 2 else blocks - 1 - (block - blocks // 2)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, id=f"{name} {size['B']}x{size['H']}x{size['HKV']}")
        for name in dense_attention.ORDERS
        for size in SIZES
        if size["H"] > size["HKV"] or "gqa_pair" not in name  # which pair the query heads of a key head
    ],
)
def test_an_order_is_its_decode_and_a_permutation(name, size):
    items = dense_attention.items_of(name, size, 8)
    blocks = size["S"] // 256
    assert np.array_equal(np.sort(items), np.arange(size["B"] * size["H"] * blocks))
    for id in range(0, items.size, 7):
        batch, head, block = decoded(name, size, id)
        assert items[id] == (batch * size["H"] + head) * blocks + block


def test_an_unknown_order_names_those_there_are():
    with pytest.raises(UnknownName, match="launched qb_minor"):
        dense_attention.items_of("launched sideways", SMALL, 8)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_every_row_is_a_permutation_of_its_items(row):
    work = workload(row)
    items = tiles_of(row, work, 8)
    assert np.array_equal(np.sort(items), np.arange(work.grid[0]))
    assert work.programs == {"mi300x": 304, "mi355x": 256}[row.gpu] if "persistent" in row.order else not work.programs


def touched(trace, workgroup):
    """[tensor, lines in order, writes] of each instruction of one workgroup."""
    found = []
    for instruction in range(trace.start[workgroup], trace.start[workgroup + 1]):
        entries, writes = naive.touches(trace, instruction)
        tensor = trace.tensors[trace.tensor[trace.template[instruction]]]
        found.append((tensor.name, [line - tensor.base_line for line, _ in entries], writes))
    return found


def test_a_workgroup_loads_its_queries_keys_to_its_diagonal_and_stores_bytes_of_each_row():
    trace = dense_attention.trace(SMALL, 0, 128)
    assert trace.n_workgroups == 2 * 4 * 2
    instructions = touched(trace, (1 * 4 + 3) * 2)  # batch 1, head 3, block 0: four tiles of 64 keys
    assert [name for name, *_ in instructions] == ["Q", *["KV"] * 4, "O"]
    rows = np.arange(512, 768)  # of batch 1, four heads of two lines each a row
    own = {int(row) * 8 + 3 * 2 + half for row in rows for half in (0, 1)}
    (_, loaded, reads), (_, stored, writes) = instructions[0], instructions[-1]
    assert set(loaded) == set(stored) == own and (len(loaded), len(stored)) == (512, 16 * 256)
    assert (reads, writes) == (False, True)
    keys = [line for _, lines, _ in instructions[1:5] for line in lines]
    k = [(512 + key) * 4 + 1 * 2 + half for key in range(256) for half in (0, 1)]
    assert sorted(keys) == sorted(k + [1024 * 4 + line for line in k])


def test_one_more_tile_of_keys_where_the_kernel_loads_ahead():
    counts = [dense_attention.trace(SMALL, over, 128).start for over in (0, 1)]
    more = np.diff(counts[1]) - np.diff(counts[0])
    last = (2 * 4 * 2 - 1) - np.array([0, 2, 4, 6])  # the last batch's last blocks have no keys behind them
    assert set(last.tolist()) == set(np.flatnonzero(more == 0).tolist()) and set(more.tolist()) == {0, 1}


def test_all_keys_without_a_mask():
    assert dense_attention.key_tiles({**SMALL, "CAUSAL": 0}).tolist() == [8, 8]
    assert dense_attention.key_tiles(SMALL).tolist() == [4, 8]


def test_a_workgroup_fills_a_cu():
    for name in dense_attention.SHAPES:
        row = next(row for row in ROWS if row.gpu == name)
        assert workgroups_per_cu(workload(row).resources, gpu(name)) == 1


def test_baseline_is_the_plain_grid_of_the_same_shape():
    for row in ROWS:
        plain = [other for other in ROWS if other.workload == row.workload and other.order == "launched qb_minor"]
        assert [row.baseline] == [other.measured for other in plain]
