"""Oracle of the queues of `swizzle_sim.pricing.issuing`: all ways in which workgroups can stand in queues, by weight.

Of queues that serve all at once and a delay the weight of a state is the product of service ** there over the queues
and elsewhere ** away / away!. Steps end at the rate that the weights of n - 1 workgroups are of those of n.
"""

from fractions import Fraction
from math import factorial


def states_weight(services, elsewhere, n):
    """Sum over all states of n workgroups."""
    if not services:
        return Fraction(elsewhere) ** n / factorial(n)
    return sum(Fraction(services[0]) ** k * states_weight(services[1:], elsewhere, n - k) for k in range(n + 1))


def step_time(services, elsewhere, n):
    """Time of a step of each of n workgroups: n over the rate at which steps end."""
    return n * states_weight(services, elsewhere, n) / states_weight(services, elsewhere, n - 1)
