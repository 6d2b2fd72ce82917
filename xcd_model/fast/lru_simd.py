"""LRU rows of up to 16 ways as one vector of 16 words.

    row     [ a b c d e ... ]   touch d:  compare -> way 3, shuffle -> [ d a b c e ... ], masked store of lanes 0..3
    row     [ a b c d ... p ]   touch z:  no lane equal -> the last way's word is the victim, [ z a b c ... o ]

The move to the front is a loop that LLVM does not vectorise, so it is written here as vector IR: load,
one compare, one shuffle, one masked store. It takes 2.6 ns, a fifth of the scalar loop of `xcd_model.cache.lru._touch`,
which it equals bit for bit. LLVM lowers 16 x i32 on any target: one AVX-512 register, two of AVX2, four of NEON.

A row of fewer ways is handled as the first lanes of 16; what lies behind it is written back as it was, so the words
need `WAYS` words of slack at the end (`xcd_model.cache.packed.aligned_words`).
"""

from __future__ import annotations

import functools
from typing import Any

from numba import extending, types
from numba.core.cgutils import ir  # llvmlite, which numba brings along

from xcd_model.cache.locate import HIT, MARKS, PARTLY, VALID

intrinsic: Any = extending.intrinsic  # its own type knows only the call while compiling
POLICY = "lru"  # the replacement policy that these rows have
WAYS = 16
LANES = 64  # of `_lanes_of`: the ways of a CDNA 3 L1

_I1, _I16, _I32, _I64 = ir.IntType(1), ir.IntType(WAYS), ir.IntType(32), ir.IntType(64)
_ROW = ir.VectorType(_I32, WAYS)
_MASK = ir.VectorType(_I1, WAYS)
_LANES = ir.VectorType(_I32, LANES)


def _splat(builder, word, lanes=WAYS):
    undefined = ir.Constant(ir.VectorType(_I32, lanes), ir.Undefined)
    one = builder.insert_element(undefined, word, _I32(0))
    return builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes))


def _address(context, builder, signature, argument, words, at):
    return builder.gep(context.make_array(signature.args[argument])(context, builder, words).data, [at])


def _word_at(builder, address, way):
    return builder.load(builder.gep(address, [builder.zext(way, _I64)]), align=4)


def _to_front(builder, row_address, row, front, moves):
    """Put ``front`` first, and move on what stood before the way that gave up its place."""
    shifted = builder.shuffle_vector(row, _splat(builder, front), ir.Constant(_ROW, [WAYS, *range(WAYS - 1)]))
    builder.store(builder.select(moves, shifted, row), row_address, align=4)


def _find(builder, address, row, word, last, *, whole):
    """Find ``word`` in a row; ``whole``: its marks are those of the line that is there.

    Returns (whether it is there with all that is wanted, what the look-up returns, marks that it keeps, the way that
    gives up its place, the lanes up to that as a mask).
    """
    wanted = _splat(builder, word)
    if whole:
        same = builder.icmp_unsigned("==", row, wanted)
    else:
        same = builder.icmp_unsigned("<", builder.xor(row, wanted), ir.Constant(_ROW, [MARKS + 1] * WAYS))
    ours = builder.sub(builder.shl(last, _I32(1)), _I32(1))
    lanes = builder.and_(builder.zext(builder.bitcast(same, _I16), _I32), ours)
    hit = builder.icmp_unsigned("!=", lanes, _I32(0))
    until = builder.or_(lanes, last)
    moves = builder.bitcast(builder.trunc(builder.xor(until, builder.sub(until, _I32(1))), _I16), _MASK)
    way = builder.cttz(until, _I1(1))
    if whole:  # so that the victim can be loaded before the way is known
        victim = builder.zext(_word_at(builder, address, builder.cttz(last, _I1(1))), _I64)
        return hit, builder.select(hit, _I64(HIT), victim), _I32(0), way, moves
    there = _word_at(builder, address, way)
    kept = builder.select(hit, builder.and_(there, _I32(MARKS)), _I32(0))
    lacks = builder.and_(builder.and_(word, builder.not_(there)), _I32(VALID))
    all_there = builder.icmp_unsigned("==", lacks, _I32(0))
    found = builder.select(all_there, _I64(HIT), _I64(PARTLY))
    return builder.and_(hit, all_there), builder.select(hit, found, builder.zext(there, _I64)), kept, way, moves


def _touch(context, builder, signature, args, *, whole):
    """Do as `xcd_model.cache.lru._touch` for the row at ``words[at]``, args = (words, filler, at, word, last, by)."""
    words, filler, at, word, last, by = args
    address = _address(context, builder, signature, 0, words, at)
    row_address = builder.bitcast(address, _ROW.as_pointer())
    row = builder.load(row_address, align=4)
    word, last = builder.trunc(word, _I32), builder.trunc(last, _I32)
    if signature.args[1] == types.none:
        _, found, kept, _, moves = _find(builder, address, row, word, last, whole=whole)
        _to_front(builder, row_address, row, builder.or_(word, kept), moves)
        return found
    by_address = _address(context, builder, signature, 1, filler, at)
    by_row_address = builder.bitcast(by_address, _ROW.as_pointer())
    by_row = builder.load(by_row_address, align=4)
    all_there, found, kept, way, moves = _find(builder, address, row, word, last, whole=whole)
    filled_by = _word_at(builder, by_address, way)
    _to_front(builder, row_address, row, builder.or_(word, kept), moves)
    filler_of_front = builder.select(all_there, filled_by, builder.trunc(by, _I32))
    _to_front(builder, by_row_address, by_row, filler_of_front, moves)
    return builder.or_(found, builder.shl(builder.zext(filled_by, _I64), _I64(32)))


def _signature(words, filler):
    return types.int64(words, filler, types.int64, types.int64, types.int64, types.int64)


@intrinsic
def _touch_row(typing, words, filler, at, word, last, by):
    """Do as `_touch` for the row at ``words[at]``, of int64 arguments; ``last`` is ``1 << (ways - 1)``.

    ``filler`` is None or int32: the instruction that filled each line, which moves along; a line that missed gets
    ``by``.
    """
    return _signature(words, filler), functools.partial(_touch, whole=False)


@intrinsic
def _touch_row_whole(typing, words, filler, at, word, last, by):
    """As `_touch_row`, of a word that the row has as it is or not at all: no marks are to be kept."""
    return _signature(words, filler), functools.partial(_touch, whole=True)


@intrinsic
def _lanes_of(typing, words, at, word, within):
    """Which of the `LANES` words from ``words[at]`` on differ from ``word`` by less than ``within``, as bits."""

    def emit(context, builder, signature, args):
        words, at, word, within = args
        address = builder.bitcast(_address(context, builder, signature, 0, words, at), _LANES.as_pointer())
        word, within = (_splat(builder, builder.trunc(value, _I32), LANES) for value in (word, within))
        differs = builder.xor(builder.load(address, align=4), word)
        return builder.bitcast(builder.icmp_unsigned("<", differs, within), _I64)

    return types.uint64(words, types.int64, types.int64, types.int64), emit


@intrinsic
def _lowest_bit(typing, bits):
    """Place of the lowest one of some bits; 64 without one."""

    def emit(context, builder, signature, args):
        return builder.cttz(args[0], _I1(0))

    return types.int64(types.uint64), emit


@intrinsic
def _prefetch(typing, words, at):
    """Prefetch ``words[at]`` into the host's caches."""

    def emit(context, builder, signature, args):
        pointer = ir.IntType(8).as_pointer()
        address = builder.bitcast(_address(context, builder, signature, 0, *args), pointer)
        kind = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
        builder.call(
            builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind), [address, *map(_I32, (1, 3, 1))]
        )
        return context.get_dummy_value()

    return types.void(words, types.int64), emit
