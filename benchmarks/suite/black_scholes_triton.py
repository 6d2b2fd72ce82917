"""Triton source of the suite's Black-Scholes: a call's price, with each asset's volatility smoothed over neighbours.

Source: F. Black, M. Scholes, Journal of Political Economy 81(3), 1973, for the price.
"""

import triton
import triton.language as tl


@triton.jit
def normal_cdf(x):
    """Cumulative distribution of the standard normal."""
    return 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def black_scholes(s_ptr, v_ptr, price_ptr, n_assets, strike, rate, years, BLOCK_SIZE: tl.constexpr):
    """Price of a European call on each asset, from its spot and the mean volatility of it and its two neighbours."""
    items = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = items < n_assets
    spot = tl.load(s_ptr + items, mask=mask, other=1.0)
    before = tl.load(v_ptr + items - 1, mask=(items >= 1) & (items - 1 < n_assets), other=0.0)
    here = tl.load(v_ptr + items, mask=mask, other=1.0)
    after = tl.load(v_ptr + items + 1, mask=items + 1 < n_assets, other=0.0)
    before = tl.where(items >= 1, before, here)  # the first and the last asset count twice
    after = tl.where(items + 1 < n_assets, after, here)
    spread = (before + here + after) / 3.0 * tl.sqrt(years)
    d1 = (tl.log(spot / strike) + rate * years) / spread + 0.5 * spread
    price = spot * normal_cdf(d1) - strike * tl.exp(-rate * years) * normal_cdf(d1 - spread)
    tl.store(price_ptr + items, price, mask=mask)
