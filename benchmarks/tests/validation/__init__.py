"""Does the model match formulas, other simulators and hardware?"""
