"""``python -m swizzle_sim.language.families`` prints the table of families."""

from swizzle_sim.language.families import families_table

if __name__ == "__main__":
    print(families_table(), end="")
