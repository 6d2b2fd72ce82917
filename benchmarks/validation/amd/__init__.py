"""What others measured on AMD hardware and published: tuned winners, pairs, throughputs; and how the model ranks them.

Rows are in ``data/amd``. `tables` reads them; `maps` and `workloads` say what ran; `replays` keeps what the model
counts of each order in ``data/amd/replayed.csv``; `scores` ranks by it, and `page` writes the result.
"""
