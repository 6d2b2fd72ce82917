"""``python -m swizzle_sim.swizzle.families`` prints the table of families."""

from swizzle_sim.swizzle.families.spec import families_table

if __name__ == "__main__":
    print(families_table(), end="")
