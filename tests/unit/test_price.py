"""Does the price of a remapping say what it costs, and survive JSON?"""

import json
from dataclasses import replace

from swizzle_sim.workload.price import CompiledKernel, RemapPrice

LAUNCHED = CompiledKernel(
    arch="sm_90a",
    triton="3.6.0",
    registers=118,
    agprs=0,
    sgprs=0,
    spills=0,
    lds_bytes=66560,
    workgroups_per_cu=2,
    loads=((16, 16), (2, 1)),
    instructions_before_loop=272,
    instructions_in_flight=4,
    code_bytes=11008,
)
REWRITTEN = replace(LAUNCHED, registers=140, workgroups_per_cu=1)


def test_lost_occupancy_is_named():
    price = RemapPrice(before=LAUNCHED, after=REWRITTEN)
    assert price.loses_occupancy and not price.is_free
    assert str(price) == "118 -> 140 registers, 2 -> 1 workgroups an SM" and price.advice == ""
    bounded = replace(LAUNCHED, registers=128, spills=2)
    offered = replace(price, offer={"maxnreg": 128}, offered=bounded)
    assert not offered.loses_occupancy and offered.launched is bounded
    assert offered.advice == (
        "scored and bundled with maxnreg=128: 118 -> 128 registers, 0 -> 2 spilled, 2 -> 2 workgroups an SM"
    )


def test_registers_without_occupancy_are_no_loss_and_not_free():
    price = RemapPrice(before=replace(LAUNCHED, arch="gfx942"), after=replace(LAUNCHED, arch="gfx942", registers=120))
    assert not price.loses_occupancy and not price.is_free
    assert str(price).endswith("2 -> 2 workgroups a CU")
    assert RemapPrice(before=LAUNCHED, after=LAUNCHED).is_free
    assert not RemapPrice(before=LAUNCHED, after=replace(LAUNCHED, spills=1)).is_free


def test_a_price_survives_json():
    price = RemapPrice(before=LAUNCHED, after=REWRITTEN, emission="x", offer={"maxnreg": 128}, offered=LAUNCHED)
    document = json.loads(json.dumps(price.as_dict()))
    assert document["loses_occupancy"] is False and price.launched == LAUNCHED  # as it is bundled
    assert RemapPrice.from_dict(document) == price
    plain = RemapPrice(before=LAUNCHED, after=LAUNCHED)
    assert RemapPrice.from_dict(json.loads(json.dumps(plain.as_dict()))) == plain
