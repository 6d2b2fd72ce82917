"""Is the description of the H200's L2 what reads of parts of memory showed, by side of the SM and home of the line?"""

import csv

import numpy as np
import pytest

from swizzle_benchmarks.lab.partitions import BLOCK_BITS, PAGE_BITS, coherence_bits_of
from swizzle_benchmarks.validation.rows import DATA
from xcd_model import gpu

H200 = gpu("h200")
HELD_MIB = H200.l2.size_bytes / 2**20


def table(name):
    with (DATA / "machine" / f"h200_{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def missed(kind, order="same"):
    """Part of what a kind of pass reads that memory answers, by the MiB read."""
    alike = [line for line in table("sides") if (line["kind"], line["order"]) == (kind, order)]
    return {int(one["mib"]): float(one["memory_mib"]) / int(one["mib"]) for one in alike if one["beside_mib"] == "0"}


@pytest.mark.parametrize(
    ("kind", "sides"),
    [
        ("one side; near", 1),
        ("both sides; one home", 1),  # a copy of each line on the other side
        ("both sides; all", 1),
        ("each side its own; near", 2),
    ],
)
def test_a_side_holds_what_is_at_home_there_and_copies_of_what_its_sms_read(kind, sides):
    found = missed(kind)
    assert len(found) == 17
    for read, part in found.items():
        if read < 0.95 * sides * HELD_MIB:
            assert part < 0.05, read
        elif read > 1.12 * sides * HELD_MIB:
            assert part > 0.9, read


def test_home_bits_of_copies_that_hit_are_forgotten():
    """Nothing is lost where copies alone take more than half of a side, with homes more than all of it."""
    found = missed("each side its own; far", "drawn")
    assert max(part for read, part in found.items() if read <= 1.3 * HELD_MIB) < 0.01  # both would take 1.3 sides
    assert found[48] > 0.5


@pytest.mark.parametrize("order", ["same", "drawn"])
@pytest.mark.parametrize("kind", ["one side; near", "one side; far"])
@pytest.mark.parametrize("what", ["reads", "stores"])
def test_what_goes_by_takes_a_place_on_the_side_of_its_sm_and_one_at_home(kind, what, order):
    """24 MiB that the SMs of side 0 read again, beside 16 MiB that SMs of a side read or store once, by home."""
    lines = [one for one in table("sides") if (one["kind"], one["order"], one["beside"]) == (kind, order, what)]
    lost = {}
    for one in (one for one in lines if one["beside_mib"] == "16"):
        side, home = int(one["beside_side"]), int(one["beside_home"])
        lost[side, home] = float(one["memory_mib"]) - (16 if what == "reads" else 0)
    assert sorted(lost) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    only_copies_lost = kind == "one side; far"  # what the other side then has at home
    for (side, home), mib in lost.items():
        on_side_0, on_side_1 = 0 in (side, home), 1 in (side, home)
        goes = on_side_0 and on_side_1 if only_copies_lost else on_side_0
        assert mib > 14 if goes else mib < 0.1, (side, home)


def test_homes_and_the_way_to_the_other_side_are_those_of_the_description():
    (found,) = table("side_homes")
    assert int(found["bits"], 16) == H200.l2_partitions.coherence_bits
    assert int(found["explained"]) > 0.999 * int(found["blocks"])
    value = {(one["what"], one["side"]): float(one["value"]) for one in table("side_clocks")}
    reads = [value["clocks of a first read", side] for side in ("the other side", "this side")]
    assert H200.l2_partitions.remote_ns == pytest.approx((reads[0] - reads[1]) / H200.clock_mhz * 1e3, rel=0.02)
    assert value["clocks of a second read", "the other side"] < reads[1] + 10  # a copy
    assert {value["SMs", side] for side in ("this side", "the other side")} == {H200.cus / 2}
    assert np.bincount(H200.l2_partitions.partition_of(H200.cus)).tolist() == [66, 66]


def drawn_map(bits, first_page, pages):
    address = (first_page << PAGE_BITS) + (np.arange(pages * 512) << BLOCK_BITS)
    return (np.bitwise_count((address & bits).astype(np.uint64)) & 1).astype(np.uint8)


@pytest.mark.parametrize("bits", [0x1000, 0xBD6AB000, 0x80000000 | 0x155000])
def test_the_bits_of_a_map_are_found_again_where_some_of_it_is_wrong(bits):
    home = drawn_map(bits, first_page=24, pages=1024)
    wrong = np.random.default_rng(0).choice(home.size, 200, replace=False)
    home[wrong] ^= 1
    found = coherence_bits_of(home)
    assert found.explained == home.size - 200
    said = drawn_map(found.bits, found.first_page, 1024)
    assert (said ^ home).mean() in (200 / home.size, 1 - 200 / home.size)
    below = (1 << 30) - 1  # bits that 2 GiB cannot tell from where they begin
    assert found.bits & below == bits & below


@pytest.mark.parametrize("blocks", [0, 1, 511, 513])
def test_a_map_that_is_no_whole_number_of_pages_is_refused(blocks):
    with pytest.raises(ValueError, match=f"{blocks} blocks"):
        coherence_bits_of(np.zeros(blocks, np.uint8))


NCU = """#!/bin/sh
while [ "$1" != --log-file ]; do [ "$1" = --metrics ] && counter=$2; shift; done
printf '"ID","Kernel Name","%s"\n"","","byte"\n"0","pass","1048576"\n' "$counter" > "$2"
printf 'kind,order,mib,beside,beside_side,beside_home,beside_mib\none side; near,same,8,nothing,0,0,0\n'
"""
NVCC = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\nprintf "what,side,value\\\\n"\nhead -c 1024 /dev/zero > "$2"\n' > "$2"
chmod +x "$2"
"""
