"""Are trips to memory counted as one does by hand, and does a file without loads say so?"""

import pytest

from swizzle_benchmarks.lab import compiled_code
from swizzle_benchmarks.lab.compiled_code import dependent_loads, trips
from swizzle_benchmarks.validation.rows import all_rows
from swizzle_benchmarks.validation.workloads.h200 import stencil_loads_in_flight

HEAD = "        /*0000*/                   "
LOAD = HEAD + "LDG.E {0}, desc[UR4][R2.64] ;\n"
WIDE = HEAD + "LDG.E.128 {0}, desc[UR4][R2.64] ;\n"
ADD = HEAD + "@P1 FADD {0}, {1}, {2} ;\n"
STORE = HEAD + "STG.E desc[UR4][R8.64], {0} ;\n"


@pytest.mark.parametrize(
    ("code", "all_far", "wide_far"),
    [
        (LOAD.format("R4") + LOAD.format("R5") + ADD.format("R6", "R4", "R5"), 1, 0.1),
        (LOAD.format("R4") + ADD.format("R6", "R4", "R4") + LOAD.format("R5") + STORE.format("R5"), 2, 0.2),
        (WIDE.format("R4") + ADD.format("R9", "R7", "R7") + LOAD.format("R12") + STORE.format("R12"), 2, 1.1),
        (LOAD.format("R4") + LOAD.format("R4") + STORE.format("R4"), 2, 0.2),  # the register is not free
        (LOAD.format("R2") + LOAD.format("R4") + STORE.format("R4"), 2, 0.2),  # an address that was loaded
        (LOAD.format("R3") + LOAD.format("R4") + STORE.format("R4"), 2, 0.2),  # the upper half of one
        (LOAD.format("R4") + ADD.format("R6", "R7", "R7"), 0, 0),  # nothing uses it
        ((LOAD.format("R4") + STORE.format("R4")).replace("LDG.E", "LDGSTS.E"), 0, 0),  # into shared memory
    ],
)
def test_trips_by_hand(code, all_far, wide_far):
    assert trips(code) == pytest.approx(all_far)
    assert trips(code, near=0.1) == pytest.approx(wide_far)


def test_of_a_file_it_says_loads_and_trips_and_of_another_that_it_has_none(tmp_path, capsys):
    one, none = tmp_path / "one.sass", tmp_path / "none.sass"
    one.write_text(".text\n" + WIDE.format("R4") + STORE.format("R4"), encoding="utf-8")
    none.write_text("nothing\n", encoding="utf-8")
    dependent_loads([str(one)])
    assert "1 loads, 1 trips, 1.0 where" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no LDG in it"):
        dependent_loads([str(none)])
    with pytest.raises(SystemExit, match="2"):
        dependent_loads([])
    assert "FILE.sass" in capsys.readouterr().err


def test_the_table_of_stencils_is_of_the_code_that_was_measured():
    """Registers of every order as Nsight Compute counted them say that it is the same code."""
    rows = [row for row in all_rows() if row.table == "h200" and row.kernel == "h200_stencil"]
    for row in rows:
        size = row.problem["BM"], row.problem["BN"], row.order, row.resources["registers"]
        assert stencil_loads_in_flight(*size, loads=40, usual=0) > 0, row.id
    assert len(rows) > 100


@pytest.mark.parametrize(
    ("tile", "order", "registers", "loads", "expected"),
    [
        ((8, 512), "grp8", 96, 40, 7),  # six trips: six loads in flight would make 6.7
        ((8, 512), "row", 92, 40, 5),
        ((16, 256), "col", 95, 40, 5),
        ((32, 32), "band8", 38, 10, 5),
        ((8, 512), "row", 96, 40, 3),  # other code: the usual
        ((64, 64), "row", 92, 40, 3),
    ],
)
def test_so_many_loads_are_in_flight_that_no_more_trips_are_made(tile, order, registers, loads, expected):
    assert stencil_loads_in_flight(*tile, order, registers, loads=loads, usual=3) == expected


def test_without_source_or_compiler_the_table_is_left_alone(monkeypatch, tmp_path, capsys):
    table = tmp_path / "table.csv"
    monkeypatch.setattr(compiled_code.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=r"pip install triton==3\.6\.0"):
        compiled_code.stencil_loads([str(tmp_path / "none.py"), str(table)])
    monkeypatch.setattr(compiled_code.importlib.util, "find_spec", lambda name: name)
    with pytest.raises(SystemExit, match=r"there is no file .*none\.py"):
        compiled_code.stencil_loads([str(tmp_path / "none.py"), str(table)])
    with pytest.raises(SystemExit, match="2"):
        compiled_code.stencil_loads([])
    assert "KERNELS.py TABLE.csv" in capsys.readouterr().err
    assert not table.exists()
