"""Triton source of the suite's Black-Scholes: one explicit step in time of the equation, on a grid of spots.

Source: F. Black, M. Scholes, Journal of Political Economy 81(3), 1973, for the equation.
"""

import triton
import triton.language as tl


@triton.jit
def black_scholes(s_ptr, v_ptr, price_ptr, n_assets, diffusion, drift, rate, step, BLOCK_SIZE: tl.constexpr):
    """Advance the value at each spot by central differences over its two neighbours."""
    items = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = items < n_assets
    spot = tl.load(s_ptr + items, mask=mask, other=0.0)
    before = tl.load(v_ptr + items - 1, mask=(items >= 1) & (items - 1 < n_assets), other=0.0)
    here = tl.load(v_ptr + items, mask=mask, other=0.0)
    after = tl.load(v_ptr + items + 1, mask=items + 1 < n_assets, other=0.0)
    before = tl.where(items >= 1, before, here)  # the first and the last value stand for what is beyond them
    after = tl.where(items + 1 < n_assets, after, here)
    curve = after - 2.0 * here + before
    gain = diffusion * spot * spot * curve + drift * spot * (after - before) - rate * here
    tl.store(price_ptr + items, here + step * gain, mask=mask)
