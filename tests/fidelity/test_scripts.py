"""Do the scripts say what they do before they do it?"""

import sys

import pytest

from benchmarks.fidelity import (
    compile_stencils,
    measure_l1,
    measure_l2,
    measure_machine,
    measure_memory_rows,
    measure_sides,
    measure_waits,
    memory_rows,
    openings,
    power,
    trips,
)

SCRIPTS = (
    *(measure_l1, measure_l2, measure_machine, measure_memory_rows, measure_sides, measure_waits),
    *(compile_stencils, memory_rows, openings, power, trips),
)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__.rpartition(".")[2])
def test_help_is_help(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["script", "--help"])
    with pytest.raises(SystemExit, match="0"):
        script.main()
    assert script.__name__ in capsys.readouterr().out


def test_a_file_that_is_not_there(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script", "nothing.sass"])
    with pytest.raises(SystemExit, match=r"there is no file nothing\.sass"):
        trips.main()


NCU = """#!/bin/sh
while [ "$1" != --log-file ]; do [ "$1" = --metrics ] && counter=$2; shift; done
printf '"ID","Kernel Name","%s"\n"","","byte"\n"0","pass","1048576"\n"1","pass","2097152"\n' "$counter" > "$2"
printf '==PROF== Connected\nreaders,order,read_mib,stored_mib\n1,same,8,0\n132,drawn,16,2\n'
"""
NVCC = "#!/bin/sh\n"


def test_the_last_pass_of_each_kind_is_a_line_with_both_counters(monkeypatch, tmp_path, programs):
    programs(ncu=NCU, nvcc=NVCC)
    monkeypatch.setattr(sys, "argv", ["measure_l2", str(tmp_path / "out")])
    measure_l2.main()
    lines = (tmp_path / "out" / "l2.csv").read_text().splitlines()
    assert lines == [
        "readers,order,read_mib,stored_mib,memory_mib,missed_mib",
        "1,same,8,0,1.00,32.00",
        "132,drawn,16,2,2.00,64.00",
    ]
    programs(ncu=NCU.replace("132,drawn,16,2\n", ""))
    with pytest.raises(SystemExit, match="2 launches were counted, 1 were made"):
        measure_l2.main()
