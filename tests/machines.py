"""Small GPUs and small traces, fixed and random."""

import dataclasses

import numpy as np
from hypothesis import strategies as st

from swizzle_sim.workload.price import CompiledKernel
from xcd_model import Cache, Claims, Gpu, Tensor, Trace, TraceBuilder, gpu
from xcd_model.spec.gpu import DISPATCHES
from xcd_model.spec.nvidia import L2Partitions

MI300X = gpu("mi300x")  # read once: thousands of small ones are made from it
COMPILED = CompiledKernel(  # a GEMM, as a compiler reports it
    **{"arch": "gfx942", "triton": "3.9.0", "registers": 118, "agprs": 0, "sgprs": 0, "spills": 0},
    **{"lds_bytes": 65536, "workgroups_per_cu": 2, "loads": ((16, 16), (2, 1)), "instructions_before_loop": 272},
    **{"instructions_in_flight": 4, "code_bytes": 11008},
)


def small_cache(like: Cache, *, sets, ways, line=128, read=128, write=64, index=None) -> Cache:
    """A cache of ``sets`` indexed by plain modulo, by (channels, lines a piece), or by a list of rows of line bits."""
    fold = index if isinstance(index, tuple) else None
    rows = tuple(row * line for row in index) if isinstance(index, list) else None
    return dataclasses.replace(
        like,
        size_bytes=sets * ways * line,
        line_bytes=line,
        ways=ways,
        read_request_bytes=read,
        write_request_bytes=write,
        channels=1,
        index="channel-fold" if fold else "modulo" if rows is None else "xor",
        index_rows=rows,
        index_channels=fold[0] if fold else None,
        index_interleave_bytes=fold[1] * line if fold else None,
    )


def _cache(like, sets, ways, index=None, *, kept=None, **request):
    kept = like.kept_between_launches if kept is None else kept
    return dataclasses.replace(
        small_cache(like, sets=sets, ways=ways, index=index, **request), kept_between_launches=kept
    )


def small_gpu(
    *,
    xcds=2,
    cus=2,
    offset=0,
    dispatch="round_robin",
    chunk=None,
    l1=None,
    l2=(4, 2),
    mall=(8, 2),
    line=128,
    read=128,
    write=64,
    kept=None,
    reads=None,
    halves=False,
    by_bank=None,
) -> Gpu:
    """An MI300X with caches of (sets, ways[, index]); no L1 for ``l1=None``, no Infinity Cache for ``mall=None``.

    ``reads`` bounds the read requests that a CU has under way; with ``halves`` the L2 fetches half lines,
    with ``by_bank`` the L1 serves banks.
    """
    big = MI300X
    request = {"line": line, "read": read, "write": write}
    return dataclasses.replace(
        big,
        xcds=xcds,
        cus_per_xcd=cus,
        dispatch_offset=offset,
        dispatch=dispatch,
        dispatch_chunk=chunk,
        limits=dataclasses.replace(big.limits, reads_in_flight_per_cu=reads),
        facts={},
        l1=dataclasses.replace(_cache(big.l1, *l1, **request), by_bank=by_bank) if l1 else None,
        l2=dataclasses.replace(_cache(big.l2, *l2, kept=kept, **request), fetches_halves=halves),
        mall=_cache(big.mall, *mall, kept=kept, **request) if mall else None,
    )


# line, read request, write request: dirty pieces from one to four a line
REQUESTS = [
    *((128, 128, 64), (128, 64, 32), (128, 32, 32), (128, 128, 128)),
    *((64, 64, 32), (64, 32, 32), (32, 32, 32), (256, 128, 64)),
]


@st.composite
def shapes(draw, most_sets):
    """(sets, ways, index) of a cache: any number of sets by modulo, powers of two by a fold or by random rows."""
    ways = draw(st.integers(1, 5))
    kind = draw(st.sampled_from(["modulo", "fold", "rows"]))
    if kind == "modulo":
        return draw(st.integers(1, most_sets)), ways, None
    if kind == "fold":
        channels, lines_per_piece = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 2, 4]))
        return channels * lines_per_piece * draw(st.sampled_from([1, 2])), ways, (channels, lines_per_piece)
    n = draw(st.integers(0, 3))
    low = [1 << bit | draw(st.integers(0, (1 << bit) - 1)) for bit in range(n)]  # a triangle: independent
    rows = [row | draw(st.integers(0, 2**20 - 1)) << n for row in low]
    return 1 << n, ways, draw(st.permutations(rows))


def roomy(shape):
    """The same with eight times the ways: nothing that a small trace reads is evicted."""
    sets, ways, index = shape
    return sets, 8 * ways, index


@st.composite
def gpus(draw, requests=None):
    line, read, write = requests or draw(st.sampled_from(REQUESTS))
    xcds = draw(st.integers(1, 5))
    l2 = draw(shapes(9))
    l1 = draw(st.one_of(st.none(), shapes(5)))
    mall = draw(st.one_of(st.none(), shapes(17), shapes(17).map(roomy)))
    kept = draw(st.booleans())
    offset = draw(st.integers(0, xcds - 1))
    cus = draw(st.integers(1, 4))
    caches = {"l1": l1, "l2": l2, "mall": mall, "kept": kept}
    caches["dispatch"] = draw(st.sampled_from(["round_robin", "round_robin", *DISPATCHES]))
    caches["chunk"] = draw(st.none() | st.integers(1, 9))
    caches["halves"] = mall is None and line > 32 and max(read, write) <= line // 2 and draw(st.booleans())
    caches["by_bank"] = line == 128 and draw(st.booleans())
    caches["reads"] = draw(st.one_of(st.none(), st.integers(1, 40)))
    machine = small_gpu(xcds=xcds, cus=cus, offset=offset, line=line, read=read, write=write, **caches)
    return machine if mall else dataclasses.replace(machine, l2_partitions=draw(st.one_of(st.none(), sides(line, cus))))


@st.composite
def sides(draw, line, cus):
    """Two sides of an L2, whose homes are dealt by some of the low bits of a line's number."""
    as_one = draw(st.sampled_from([None, 1, 2, 4]))
    return L2Partitions(
        coherence_bits=draw(st.integers(1, 255)) * line,
        cu_groups=draw(st.integers(1, cus)),
        remote_ns=draw(st.sampled_from([0.001, 90.0])),
        reads_as_one=as_one,
        under_way=as_one and draw(st.sampled_from([0.001, 0.05, 0.7, 1.0])),
    )


@st.composite
def built_traces(draw, line_bytes=128):
    """Rectangles of up to three arrays, overlapping as they may, read and written, clipped at the edges."""
    n = draw(st.integers(1, 24))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    build = TraceBuilder(n_workgroups=n, line_bytes=line_bytes)
    arrays = []
    for name in "xyz"[: draw(st.integers(1, 3))]:
        rows, cols, item = (int(rng.integers(1, high)) for high in (12, 90, 9))
        pitch = cols * item + int(rng.choice([0, 0, 5, 64]))
        arrays.append(build.array(name, rows=rows, cols=cols, item_bytes=item, pitch_bytes=pitch))
    for step in range(draw(st.integers(1, 4))):
        trips = int(rng.integers(1, 4))
        accesses = []
        for _ in range(int(rng.integers(1, 4))):
            array = arrays[rng.integers(len(arrays))]
            put = build.write if rng.random() < 0.4 else build.read
            beyond = (
                0 if step == 0 else 1
            )  # in the first step every rectangle begins inside: nobody is left with nothing
            row = rng.integers(0, array.shape[0] + beyond, (n, trips))
            col = rng.integers(0, array.shape[1] + beyond, (n, trips))
            accesses.append(put(array, row=row, col=col, rows=rng.integers(1, 5), cols=rng.integers(1, 60)))
        build.step(*accesses)
    return build.trace()


@st.composite
def raw_traces(draw, line_bytes=128):
    """Any arrays that fit: ragged lengths, lines in any order, any sectors, some stored twice, tensors with gaps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tensors, at = [], int(rng.integers(0, 5))
    for name in "abc"[: draw(st.integers(1, 3))]:
        size = int(rng.integers(1, 24))
        tensors.append(Tensor(name, at, size, size * line_bytes))
        at += size + int(rng.integers(0, 40))
    rel, sectors, is_write, owner, spans = [], [], [], [], []
    for _ in range(int(rng.integers(1, 6))):
        t = int(rng.integers(len(tensors)))
        span = int(rng.integers(1, tensors[t].n_lines + 1))
        some = rng.permutation(span)[: rng.integers(1, span + 1)]
        is_write.append(rng.random() < 0.4)
        again = is_write[-1] and rng.random() < 0.5
        rel.append(rng.choice(some, 2 * some.size) if again else some)
        sectors.append(rng.integers(1, 1 << (line_bytes // 32), rel[-1].size))
        owner.append(t)
        spans.append(span)
    lengths = rng.integers(draw(st.integers(0, 1)), 7, draw(st.integers(1, 24)))  # some workgroups may touch nothing
    lengths[rng.integers(lengths.size)] += 1
    template = rng.integers(0, len(rel), lengths.sum())
    first = np.array([tensors[owner[t]].base_line for t in template])
    free = np.array([tensors[owner[t]].n_lines - spans[t] for t in template])
    return Trace(
        line_bytes=line_bytes,
        tensors=tuple(tensors),
        start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        base=(first + rng.integers(0, free + 1)).astype(np.int64),
        template=template.astype(np.int32),
        rel_start=np.concatenate([[0], np.cumsum([r.size for r in rel])]).astype(np.int64),
        rel=np.concatenate(rel).astype(np.int32),
        sectors=np.concatenate(sectors).astype(np.uint8),
        is_write=np.array(is_write, bool),
        tensor=np.array(owner, np.int32),
        wave_requests=rng.integers(1, 5, sum(r.size for r in rel)).astype(np.uint16),
        waves=rng.integers(0, 9, (len(rel), 4)),
    )


def _of_tiles(draw, rng, tiles, sectors, is_write, n_lines, line_bytes):
    """Trace of one tensor whose workgroups touch whole tiles, (tile, line), as many as is drawn and in any order."""
    lengths = rng.integers(draw(st.integers(0, 1)), 9, draw(st.integers(1, 24)))
    lengths[rng.integers(lengths.size)] += 1
    n_tiles, tile_lines = tiles.shape
    return Trace(
        line_bytes=line_bytes,
        tensors=(Tensor("t", 0, n_lines, n_lines * line_bytes),),
        start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        base=np.zeros(lengths.sum(), np.int64),
        template=rng.integers(0, n_tiles, lengths.sum()).astype(np.int32),
        rel_start=np.arange(n_tiles + 1, dtype=np.int64) * tile_lines,
        rel=tiles.reshape(-1).astype(np.int32),
        sectors=sectors.astype(np.uint8),
        is_write=is_write,
        tensor=np.zeros(n_tiles, np.int32),
        wave_requests=rng.integers(1, 5, tiles.size).astype(np.uint16),
        waves=rng.integers(0, 9, (n_tiles, 4)),
    )


@st.composite
def tiled_traces(draw, line_bytes=128):
    """Disjoint tiles, touched whole: what symmetry is exact for. Most tiles repeat a pattern over the sets."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_tiles, tile_lines = draw(st.integers(1, 12)), int(rng.choice([4, 8, 16, 24]))
    scatter = draw(st.booleans())
    deal = rng.permutation(n_tiles * tile_lines) if scatter else np.arange(n_tiles * tile_lines)
    tiles = deal.reshape(n_tiles, tile_lines)
    every = (1 << (line_bytes // 32)) - 1
    part = int(rng.integers(1, every + 1))  # some lines whole, some in part: the order of dirty pieces counts
    sectors = np.where(rng.random(deal.size) < rng.choice([0, 0.3]), part, every)
    return _of_tiles(draw, rng, tiles, sectors, rng.random(n_tiles) < rng.choice([0.3, 0.8]), deal.size, line_bytes)


@st.composite
def shared_traces(draw, line_bytes=128):
    """Tiles that share lines: the same ones in other sectors, read and written, or with rows of lines between them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    row, n_tiles, rows = int(rng.choice([4, 8, 16])), draw(st.integers(1, 6)), int(rng.integers(1, 4))
    step = int(rng.choice([0, 1, rows]))  # rows between tiles: all the same, some shared, or none
    tiles = np.arange(rows * row) + row * step * np.arange(n_tiles)[:, None]
    copies = 1 + draw(st.integers(0, 2))
    rel, n_lines = np.tile(tiles, (copies, 1)), int(tiles.max()) + 1 + draw(st.sampled_from([0, 0, 3]))
    sectors = np.repeat(rng.integers(1, 1 << (line_bytes // 32), len(rel)), rows * row)
    return _of_tiles(draw, rng, rel, sectors, rng.random(len(rel)) < rng.choice([0, 0.3, 0.8]), n_lines, line_bytes)


@st.composite
def cases(draw, traces=None):
    """(trace, order, gpu, workgroups per CU) that fit each other."""
    requests = draw(st.sampled_from(REQUESTS))
    make = traces or draw(st.sampled_from([built_traces, raw_traces, tiled_traces, shared_traces]))
    trace = draw(make(line_bytes=requests[0]))
    machine = draw(gpus(requests=requests))
    order = np.array(draw(st.permutations(range(trace.n_workgroups))), np.int64)
    return trace, order, machine, draw(st.integers(1, 3))


@st.composite
def claimed(draw, n_tiles, xcds):
    """Programs and claims of a persistent kernel: one counter, one for each XCD or more; tiles for all, or stolen."""
    local = draw(st.one_of(st.just(n_tiles), st.integers(0, n_tiles)))
    pools = draw(st.sampled_from([1, xcds, 2 * xcds, 3]))
    steals = draw(st.booleans())
    programs = draw(st.integers(1 if steals else min(pools, local, n_tiles) or 1, n_tiles))
    return {"programs": programs, "claims": Claims(pools=pools, local=local, steals=steals)}


def gemm_trace(m, n, k, block_m, block_n, block_k, *, line_bytes=128, more_bytes=(0, 0, 0)) -> Trace:
    """GEMM of row-major fp16 matrices, rows so many bytes longer than need be, one tile a workgroup, row-major."""
    tiles_n = -(-n // block_n)
    pid_m, pid_n = np.divmod(np.arange(-(-m // block_m) * tiles_n), tiles_n)
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=line_bytes)
    shapes = zip("ABC", ((m, k), (k, n), (m, n)), more_bytes, strict=True)
    a, b, c = (
        build.array(name, rows=rows, cols=cols, item_bytes=2, pitch_bytes=2 * cols + more)
        for name, (rows, cols), more in shapes
    )
    row, col, inner = (pid_m * block_m)[:, None], (pid_n * block_n)[:, None], np.arange(0, k, block_k)[None, :]
    build.step(
        build.read(a, row=row, col=inner, rows=block_m, cols=block_k),
        build.read(b, row=inner, col=col, rows=block_k, cols=block_n),
    )
    build.step(build.write(c, row=row, col=col, rows=block_m, cols=block_n))
    return build.trace()
