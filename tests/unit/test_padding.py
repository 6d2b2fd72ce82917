"""Is a padded trace the one that a kernel of that leading dimension has?"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.capture.same_trace import assert_equal_traces
from xcd_model import TraceBuilder
from xcd_model.errors import TraceError, UnknownName
from xcd_model.trace.padding import padded

LINE = 128


def product(sides, blocks, more=(0, 0, 0)):
    """Trace of C = A B, rows so many bytes longer than they need to be."""
    (m, n, k), (block_m, block_n, block_k) = sides, blocks
    tiles_n = -(-n // block_n)
    pid_m, pid_n = np.divmod(np.arange(-(-m // block_m) * tiles_n), tiles_n)
    build = TraceBuilder(n_workgroups=pid_m.size, line_bytes=LINE)
    shapes = (("A", m, k), ("B", k, n), ("C", m, n))
    a, b, c = (
        build.array(name, rows=rows, cols=cols, item_bytes=2, pitch_bytes=2 * cols + extra)
        for (name, rows, cols), extra in zip(shapes, more, strict=True)
    )
    row, col, inner = (pid_m * block_m)[:, None], (pid_n * block_n)[:, None], np.arange(0, k, block_k)[None, :]
    build.step(
        build.read(a, row=row, col=inner, rows=block_m, cols=block_k),
        build.read(b, row=inner, col=col, rows=block_k, cols=block_n),
    )
    build.step(build.write(c, row=row, col=col, rows=block_m, cols=block_n))
    return build.trace()


sides = st.tuples(st.integers(1, 70), *[st.integers(1, 4).map(lambda lines: lines * LINE // 2)] * 2)
blocks = st.tuples(*[st.sampled_from([16, 32, 64, 128])] * 3)


@settings(max_examples=60, deadline=None)
@given(sides=sides, blocks=blocks, which=st.integers(0, 2), lines=st.integers(0, 3))
def test_padded_is_the_trace_of_the_kernel_with_longer_rows(sides, blocks, which, lines):
    name, wide = "ABC"[which], (sides[2], sides[1], sides[1])[which]
    more = [lines * LINE if i == which else 0 for i in range(3)]
    found = padded(product(sides, blocks), name, pitch_bytes=2 * wide, more_bytes=lines * LINE)
    assert_equal_traces(product(sides, blocks, more), found)


def test_what_cannot_be_padded_is_refused():
    trace = product((64, 64, 64), (32, 32, 32))
    with pytest.raises(UnknownName, match="no tensor is called 'D'"):
        padded(trace, "D", pitch_bytes=LINE, more_bytes=LINE)
    for pitch, more in ((100, LINE), (LINE, 64), (0, LINE), (LINE, -LINE)):
        with pytest.raises(TraceError, match="whole lines of 128 B are moved"):
            padded(trace, "A", pitch_bytes=pitch, more_bytes=more)
    with pytest.raises(TraceError, match="a tile runs over the end of a row"):
        padded(product((64, 64, 96), (32, 32, 32)), "A", pitch_bytes=2 * LINE, more_bytes=LINE)
