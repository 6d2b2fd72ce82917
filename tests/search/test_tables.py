"""Are rows of libraries' tables read with their own signs, judged as their launch, and written in their own format?"""

import json

import numpy as np
import pytest

from swizzle_sim.language import Swizzle, family
from swizzle_sim.pricing.scoring import Scorer
from swizzle_sim.search.tables.gemm import Operand, TiledGemm, launched_as
from swizzle_sim.search.tables.judge import copies, finding, judged, loaded, point_of
from swizzle_sim.search.tables.read import MOST_BYTES, read_table
from xcd_model.errors import SearchError

HEAD = "gfx,cu_num,M,N,K,q_dtype_w,libtype,kernelId,splitK,us,kernelName"
KERNEL = "flydsl_bpreshuflle_128x128x128_F8_F8_B16_{}_default"
BLOCKS = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8, "num_warps": 4}
MOE = "E=8,N=256,device_name={},dtype=fp8_w8a8.json"
SOLUTION = {
    **{"DepthU": 64, "GlobalSplitU": 1, "LdsNumBytes": 32768, "MacroTile0": 128, "MacroTile1": 128, "NumThreads": 256},
    **{"PrefetchGlobalRead": 2, "StaggerU": 0, "StreamK": 0},
}
# of a solution: WorkGroupMapping, its XCC and group; of a row: M, N, B, K and its solution
SOLUTIONS = ((1, 1, -1), (8, 1, -1), (8, 8, 0), (-4, 1, -1))
ROWS = (
    (1024, 1024, 1, 256, 0),
    (1024, 1024, 1, 512, 2),
    (1024, 64, 1, 256, 1),
    (1024, 1024, 3, 256, 1),
    (512, 512, 1, 256, 3),
)


def aiter(*rows):
    lines = [f"gfx950,256,{m},{n},{k},fp8,flydsl,7,{split},9.5,{KERNEL.format(end)}" for m, n, k, split, end in rows]
    return "\n".join([HEAD, *lines]) + "\n"


def tensile():
    solutions = []
    for i, (wgm, xcc, group) in enumerate(SOLUTIONS):
        order = {"WorkGroupMapping": wgm, "WorkGroupMappingXCC": xcc, "WorkGroupMappingXCCGroup": group}
        name = f"Cijk_MT128x128x64_GSU1_WGM{wgm}_WGMXCC{xcc}_WGMXCCG{group}".replace("G-1", "Gn1")
        fields = [f"{k}: {v}" for k, v in {**SOLUTION, "SolutionIndex": i, "SolutionNameMin": name, **order}.items()]
        solutions += [("- - " if i == 0 else "  - ") + fields[0], *("    " + one for one in fields[1:])]
    logic = [line for m, n, b, k, i in ROWS for line in (f"  - - [{m}, {n}, {b}, {k}]", f"    - [{i}, 812.5]")]
    problem = [
        "- DataType: 4",
        "  DataTypeA: 4",
        "  DataTypeB: 4",
        "  DestDataType: 4",
        "  TransposeA: 1",
        "  TransposeB: false",
    ]
    head = ["- {MinimumRequiredVersion: 4.33.0}", "- aquavanjaram", "- gfx942", "- [Device 0049]"]
    tail = ["- null", "- null", "- DeviceEfficiency", "- Equality"]
    logic[0] = "-" + logic[0][1:]
    return "\n".join([*head, *problem, *solutions, "- [2, 3, 0, 1]", *logic, *tail]) + "\n"


def timings(*times):
    made = [
        [{"kwargs": {**BLOCKS, "GROUP_SIZE_M": group}, "num_warps": 4, "num_stages": 2}, [time]]
        for group, time in times
    ]
    return json.dumps({"key": [1024, 1024, 256, "torch.float16", "torch.float16"], "configs_timings": made})


@pytest.fixture
def read(tmp_path):
    def written(name, text, **given):
        path = tmp_path / name
        path.write_text(text)
        return read_table(path, given)

    return written


def test_aiter_names_xcd_swizzle_by_version(read):
    ends = ("1x2x4x2", "0x1x0x1", "2x1x0x3x4", "2x1x0x3")
    table = read("tuned.csv", aiter(*((1024, 512, 256, 0, end) for end in ends), (1024, 512, 256, 4, ends[0])))
    assert [row.named for row in table.rows[:3]] == [f"xcd_swizzle(group={n})" for n in (4, 0, 4)]
    assert [row.lds_bytes // (128 * 128) for row in table.rows[:3]] == [2, 1, 2]
    assert [row.why for row in table.rows] == ["", "", "", "its kernel names no order of workgroups", "K is split"]
    first = table.rows[0]
    assert first.plain == "xcd_swizzle(group=0)" and first.gpu == "mi355x" and first.workgroups == 32
    name = table.changed(first, "xcd_swizzle(group=8)", "measure xcd_swizzle(group=8)")
    assert name == KERNEL.format("1x2x8x2") and table.lines[0].endswith(",retune\n")
    assert f',{name},"measure xcd_swizzle(group=8); was {KERNEL.format(ends[0])}"' in table.lines[1]
    assert all(line.count(",") == HEAD.count(",") + 1 for line in table.lines)


def test_tensile_names_its_mapping_with_sign_and_group(read):
    table = read("logic.yaml", tensile())
    orders = ["wgm(size=1)", "wgm(size=8, xcc=8, group=0)", "wgm(size=8)", "wgm(size=8)", "wgm(size=-4)"]
    assert [row.named for row in table.rows] == orders
    assert [row.why for row in table.rows] == ["", "", "", "a batch", ""]
    gemm = TiledGemm.from_dict(table.rows[2].launch["gemm"])
    assert gemm.shape == (64, 1024) and gemm.tiles == (1, 8)  # C has M contiguous
    assert [one.k_fast for one in gemm.operands] == [True, True] and table.rows[3].workgroups == 3 * 64
    assert table.changed(table.rows[0], "wgm(size=8)", "measure") == "solution 1"
    assert table.lines[table.rows[0].line] == "    - [1, 812.5]  # retune: measure; was 0\n"
    assert table.changed(table.rows[1], "wgm(size=2)", "measure") == ""
    assert "no solution of the file has it" in table.lines[table.rows[1].line]


def test_fused_moe_and_block_gemm_are_read_by_their_names(read):
    rows = {"16": BLOCKS, "triton_version": "3.4", "512": {**BLOCKS, "GROUP_SIZE_M": 1}}
    table = read(MOE.format("AMD_Instinct_MI300X"), json.dumps(rows, indent=4), K=512, TOPK=2)
    assert [row.named for row in table.rows] == ["group_m(size=8)", "row"] and table.rows[0].gpu == "mi300x"
    problem = table.rows[0].launch["problem"]  # a byte an item: half of K in two bytes
    assert (problem["N"], problem["K"], problem["BLOCK_K"], table.rows[0].tiles_m) == (512, 256, 32, 0.25)
    assert table.changed(table.rows[0], "row", "") == "GROUP_SIZE_M 1" and "\n".join(table.lines).count('M": 1,') == 2
    dense = read("N=512,K=256,device_name=NVIDIA_H100_PCIe,dtype=fp8_w8a8.json", json.dumps({"64": BLOCKS}))
    assert dense.rows[0].sizes == {"M": 64, "N": 512, "K": 256} and dense.rows[0].gpu == ""
    mixed = read(MOE.format("AMD_Instinct_MI300X").replace("fp8_w8a8", "int4_w4a16"), json.dumps({"64": BLOCKS}))
    assert "operands of two kinds" in mixed.rows[0].why


def test_a_cache_of_triton_has_times_of_its_groups(read):
    (row,) = read("matmul.autotune.json", timings((1, 0.2), (8, 0.1), (4, 0.15))).rows
    assert row.named == "group_m(size=8)" and set(row.others) == {"row", "group_m(size=4)", "group_m(size=8)"}
    assert row.measured == pytest.approx({"row": 2.0, "group_m(size=8)": 1.0, "group_m(size=4)": 1.5})
    whole = timings((8, 0.1)).replace('"GROUP_SIZE_M": 8', '"GROUP_SIZE_M": 8, "SPLIT_K": 2')
    (split,) = read("split.autotune.json", whole).rows
    assert (split.why, split.workgroups) == ("K is split", 2 * row.workgroups)
    about = {"best": "row", "verdict": "measure", "gains": {"row": 0.1}, "decides": "time", "error": "", "time_us": 1.0,
             "tolerance": 0, "same": [], "scores": {n: {"l2_hit_rate": 0.1} for n in row.measured}}  # fmt: skip
    found = finding(row, loaded("mi300x"), 1.0, about, "")
    assert found.verdict == "leave" and "measured 100.0 % slower" in found.notes[0]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "", "a.csv: no rows"),
        ("a.csv", HEAD + "\n", "no rows"),
        ("a.csv", "M,N\n1,2\n", "a.csv:1: no column cu_num, K, kernelName, us"),
        ("a.csv", aiter((64, 64, 64, 0, "1x2x4x2")) + "a,b" * 20, "a.csv:3: 21 cells below 11 columns"),
        ("a.csv", aiter(("x", 64, 64, 0, "1x2x4x2")), r"a.csv:2: M, N, K, .* not .*'x'"),
        ("a.yaml", "- a\n- b\n", "no logic file of Tensile"),
        ("a.yaml", tensile().replace("[2, 812.5]", "[9, 812.5]"), r"a.yaml:\d+: a row is"),
        ("a.yaml", tensile().replace("MacroTile1: 128", "MacroTile1: a", 1), r":\d+: a solution without MacroTile1"),
        ("a.yaml", tensile().replace("StaggerU: 0", "StaggerU: x", 1), r":\d+: a solution without StaggerU"),
        ("a.yaml", tensile().replace("DepthU: 64", "DepthU: 0", 1), r":\d+: a solution without DepthU"),
        ("a.json", "{", r"a.json:1: is no JSON"),
        ("a.json", "{}", "is no table of fused MoE"),
        (MOE.format("X"), json.dumps({"8": {"GROUP_SIZE_M": 1}}), "'8': a count of tokens"),
        ("a.json", json.dumps({"key": [1], "configs_timings": []}), "is no cache"),
        ("a.txt", "", "a table ends in"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_by_file_and_line(read, name, text, said):
    with pytest.raises(SearchError, match=said):
        read(name, text)


def test_a_file_beyond_the_limit_is_not_read(tmp_path):
    path = tmp_path / "a.csv"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 200)
    with pytest.raises(SearchError, match="over 64 MiB"):
        read_table(path, {})


def test_a_launch_in_the_rows_order_is_that_order(mi300x):
    """It counts what the plain one counts under that order, and others relative to it count as they are."""
    operands = Operand(along=1, item_bytes=2), Operand(along=0, item_bytes=2, k_fast=False)
    size = {"shape": (512, 384), "k": 128, "tile": (64, 64), "depth": 32, "stagger": 4}
    gemm = TiledGemm(**size, dtype="fp16", lds_bytes=8192, operands=operands)
    orders = {
        name: Swizzle.parse(family(name)).permutation(gemm.grid, 8) for name in ("wgm(size=-3)", "contiguous+column")
    }
    named, other = orders.values()
    plain = Scorer(gemm.kernel(), mi300x, replay="lockstep")
    own = Scorer(launched_as(gemm.kernel(), named), mi300x, replay="lockstep")
    assert own.baseline.l2_hits == plain.score_order(named, baseline_us=None).l2_hits
    relative = np.argsort(named)[other]
    assert own.score_order(relative, baseline_us=None).l2_hits == plain.score_order(other, baseline_us=None).l2_hits


def test_a_tile_begins_its_loop_where_the_kernel_says():
    operands = (Operand(along=1, item_bytes=2), Operand(along=0, item_bytes=2))
    row, column = np.divmod(np.arange(20), 10)

    def starts(k, mapping=0):
        about = {"shape": (128, 640), "k": k, "tile": (64, 64), "depth": 64, "stagger": 8, "stagger_shift": 1}
        gemm = TiledGemm(**about, stagger_mapping=mapping, operands=operands, dtype="fp16", lds_bytes=0)
        return list(gemm.staggered(row, column)[:11])

    assert starts(4096) == [0, 2, 4, 6, 8, 10, 12, 14, 0, 2, 0]
    assert starts(300) == [0, 2] * 5 + [0]  # four whole steps hold two strides
    assert starts(100) == [0] * 11
    assert starts(4096, mapping=1) == [0] * 10 + [2]
    assert starts(4096, mapping=2) == [0] * 11


def test_rows_are_contradicted_or_noise(read, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = read("logic.yaml", tensile())
    gpu = loaded("mi300x")
    about = judged(point_of(table.rows[2], gpu))
    assert about["same"] and about["gains"]["wgm(size=1)"] == 0.0  # one M tile: its group permutes nothing
    found = finding(table.rows[2], gpu, 2.0, about, "")
    assert "noise" in " ".join(found.notes) and "8 workgroups on 304 CUs" in found.notes and found.weight == 0
    monkeypatch.setattr("swizzle_sim.search.tables.judge._judged", lambda point: pytest.fail("replayed again"))
    assert judged(point_of(table.rows[2], gpu)) == about
    scores = {
        "wgm(size=1)": {"l2_hit_rate": 0.3},
        "wgm(size=8)": {"l2_hit_rate": 0.5},
        "wgm(size=-4)": {"l2_hit_rate": 0.3},
    }
    gains = {name: one["l2_hit_rate"] - 0.3 for name, one in scores.items()}
    model = {"best": "wgm(size=8)", "verdict": "measure", "decides": "l2_hit_rate", "time_us": 10.0}
    model |= {"tolerance": 0.01, "scores": scores, "same": [], "gains": gains}
    launched = finding(table.rows[0], gpu, 3.0, model, "")
    assert "20.0 points more" in launched.contradicts and launched.weight == pytest.approx(0.2 * 10 * 3)
    assert "launch order is as good" in finding(table.rows[4], gpu, 1.0, model, "").contradicts


def test_copies_are_found_between_tables_and_gpus_of_one(read):
    text = json.dumps({"16": BLOCKS}, indent=4)
    one, two = (read(MOE.format(name), text) for name in ("AMD_Instinct_MI300X", "AMD_Instinct_MI325X"))
    assert "MI325X" in copies(one, [two])[one.rows[0].line] and not copies(one, [])
    rows = aiter((64, 64, 64, 0, "1x2x4x2")).splitlines()
    both = read("a.csv", "\n".join([*rows, rows[1].replace("gfx950,256", "gfx942,304")]) + "\n")
    assert copies(both, []) == {2: "letter by letter that of mi300x", 3: "letter by letter that of mi355x"}


def test_the_command_judges_sorts_and_writes(tmp_path, typed):
    (tmp_path / "t.csv").write_text(
        aiter((256, 128, 256, 0, "1x2x4x2"), (512, 256, 256, 0, "1x2x0x2"), (64, 64, 64, 9, "1x2x4x2"))
    )
    (tmp_path / "calls.csv").write_text("M,N,calls\n512,256,7\n")
    words = ("retune", "t.csv", "--calls", "calls.csv", "--jobs", "1", "-o", "new.csv")
    answer = typed(*words, "--json")
    assert not answer.code, answer.err
    assert [row["calls"] for row in answer.json["rows"] if row["sizes"]["M"] == 512] == [7.0]
    assert answer.json["counts"]["not replayed"] == 1 and len(answer.json["rows"]) == 3
    shown = typed(*words)
    assert "1 rows: not replayed: K is split" in shown.out and "written: new.csv" in shown.out
    assert typed("retune", "t.csv", "-o", "t.csv").code == 2
    mixed = MOE.format("AMD_Instinct_MI300X").replace("fp8_w8a8", "int4_w4a16")
    (tmp_path / mixed).write_text(json.dumps({"64": BLOCKS}))
    assert "does not say it: K=4096\n" in typed("retune", mixed, "TOPK=2", "--jobs", "1").err
    assert "no size that a table may lack is called 'TOPKS'" in typed("retune", mixed, "TOPKS=2").err
