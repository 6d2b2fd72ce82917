"""Does each command of the laboratory say what it does before it does it, and write what was counted?"""

import csv
import sys
from pathlib import Path

import pytest

from swizzle_benchmarks.evidence import PAGES
from swizzle_benchmarks.lab import __main__ as lab
from swizzle_benchmarks.lab import bundles_counted
from swizzle_benchmarks.lab.memory import fills
from swizzle_benchmarks.validation.rows import DATA
from swizzle_sim.hardware.node.manifest import read_manifest

BUNDLES = Path(__file__).parents[3] / "tests" / "hardware" / "data" / "h200"


@pytest.mark.parametrize("name", lab.COMMANDS)
def test_help_is_help(name, capsys):
    if not lab.COMMANDS[name].tables:
        pytest.importorskip("triton")
    with pytest.raises(SystemExit, match="0"):
        lab.main([name, "--help"])
    assert f"swizzle_benchmarks.lab {name}" in capsys.readouterr().out


def test_the_list_names_every_command_and_tables_that_are_there(capsys):
    lab.main([])
    listed = capsys.readouterr().out
    for name, command in lab.COMMANDS.items():
        assert f"\n{name}" in listed and command.needs in listed
        for table in command.tables:
            assert (DATA / table).is_file(), table


def test_the_readme_names_every_table_of_the_machine():
    about = (DATA / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in (DATA / "machine").iterdir() if f"`machine/{path.name}`" not in about] == []


def test_an_unknown_command_is_refused_with_the_known_ones():
    with pytest.raises(SystemExit, match="no command 'l3'; one of steps-replay, product-steps-replay"):
        lab.main(["l3"])


def test_a_file_that_is_not_there():
    with pytest.raises(SystemExit, match=r"there is no file nothing\.sass"):
        lab.main(["dependent-loads", "nothing.sass"])


def test_the_module_runs(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["swizzle_benchmarks.lab"])
    lab.main()
    assert capsys.readouterr().out == lab.listing()


def test_the_table_of_bundles_has_times_and_counters_and_names_a_wrong_order(tmp_path):
    found = bundles_counted.bundles(BUNDLES)
    orders = [(place.name, one["id"]) for place in found for one in read_manifest(place)["candidates"]]
    said = []
    for number, (bundle, name) in enumerate(orders):
        permutation = "differs" if number == 1 else "equal"
        said.append(
            {"bundle": bundle, "what": "check", "candidate": name, "how": "bitwise", "permutation": permutation}
        )
        times = {name: {"cold": [3.0, 1.0, 2.0], "warm": [1.0]}}
        said.append({"bundle": bundle, "what": "times", "times": times})
    counted = [dict.fromkeys(bundles_counted.METRICS, 10.0 * number) for number in range(len(orders))]
    whole = [str(10 * number) for number in range(len(orders))]
    for rows, reads in ((counted, whole), (counted[1:], [""] * len(orders))):
        bundles_counted.write(BUNDLES, tmp_path / "counted.csv", said, rows)
        with (tmp_path / "counted.csv").open(newline="") as file:
            lines = list(csv.DictReader(file))
        assert [(one["bundle"], one["candidate"]) for one in lines] == orders
        assert [one["dram_read_bytes"] for one in lines] == reads
        assert [one["result"] for one in lines] == ["bitwise", "differs", *["bitwise"] * (len(orders) - 2)]
        assert {(one["time_cold_us"], one["time_warm_us"]) for one in lines} == {("2.0", "1.0")}


def test_a_folder_without_bundles_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="no bundles here"):
        lab.main(["bundles", str(tmp_path), str(tmp_path / "counted.csv")])


def test_the_page_of_bursts_has_the_figures_of_the_committed_table():
    page = (PAGES / "laboratory/h200-sm.md").read_text(encoding="utf-8")
    with (DATA / "machine" / "h200_fill.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    kinds = fills(lines)
    for kind in (
        ("cg", 1, 1, 128, 0),
        ("cg", 132, 1, 128, 0),
        ("cg", 132, 1, 256, 0),
        ("cg", 132, 2, 256, 0),
        ("ca", 132, 1, 128, 0),
    ):
        words = dict(zip(("", "SMs", "workgroups an SM", "threads", "ahead"), kind, strict=True))
        least, rate = kinds[tuple(f"{value} {name}".strip() for name, value in words.items())]
        assert f"| {kind[1]} | {kind[2]} | {kind[3]} | {kind[4]} | {least:.0f}, {rate:.1f} |" in page
    (burst,) = [
        float(one["clocks"])
        for one in lines
        if [one[name] for name in ("copies", "sms", "workgroups_per_sm", "threads", "ahead", "burst_bytes")]
        == ["cg", "132", "1", "256", "0", "32768"]
    ]
    assert f"takes {burst:.0f} clocks" in page.replace("\n", " ")


def test_what_is_said_of_reads_that_meet_was_counted():
    with (DATA / "machine" / "h200_coalescer.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    text = (PAGES / "laboratory/h200-l2.md").read_text(encoding="utf-8")

    def shares(kind, late="0", members=None):
        mine = [one for one in lines if one["kind"] == kind and one["late"] == late]
        return {
            (int(one["last"]), int(one["members"])): int(one["reached_bytes"]) / int(one["bytes"])
            for one in mine
            if members in (None, int(one["members"]))
        }

    pairs = {last: share for (last, _), share in shares("pair").items()}
    met = sorted(share for last, share in pairs.items() if share < 0.95 and last != 1)
    assert f"| one | {shares('first', members=1)[0, 1]:.2f} |" in text
    assert f"| SM 0 and 1, one TPC | {pairs[1]:.2f} |" in text
    assert f"SM 0 and one of {len(met)} others" in text and f"| {met[0]:.2f} to {met[-1]:.2f} |" in text
    assert f"any of the remaining {len(pairs) - 1 - len(met)} | 1.00 |" in text
    assert f"| all 132 | {shares('first', members=132)[131, 132]:.2f} |" in text
    late = [shares("first", one)[131, 132] for one in ("50", "100", "200", "300", "400", "600", "800", "1200", "3200")]
    assert f"50 to 3200 cycles late | {min(late):.2f} to {max(late):.2f} |" in text
    apart = ", ".join(f"{shares('pair', one)[1, 2]:.2f}" for one in ("50", "100", "200", "300", "400"))
    assert f"cycles late | {apart} |" in text


def test_what_is_said_of_sms_that_read_the_same_was_counted():
    text = (PAGES / "laboratory/h200-l2.md").read_text(encoding="utf-8")
    with (DATA / "machine" / "h200_meeting.csv").open(encoding="utf-8", newline="") as file:
        lines = [{name: float(value) for name, value in one.items()} for one in csv.DictReader(file)]
    assert {one["sms"] for one in lines} == {120}
    for burst in (65536, 16384):
        mine = [one for one in lines if one["burst"] == burst and not one["together"]]
        assert [one["readers"] for one in mine] == [1, 2, 4, 8]
        said = (f"{burst / one['clocks']:.1f} ({one['reached_bytes'] / one['bytes']:.2f})" for one in mine)
        assert f"| {burst // 1024} KiB | {' | '.join(said)} |" in text
