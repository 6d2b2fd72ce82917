"""Tables of counters, as tests read them."""

import csv


def lines_of(path):
    """Lines of a table, by the names of its columns."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
