from swizzle_sim.report.display.picture import png
from swizzle_sim.report.figures import best_so_far, over_time, per_xcd, xcd_map
from swizzle_sim.report.page import write_best, write_report

__all__ = ["best_so_far", "over_time", "per_xcd", "png", "write_best", "write_report", "xcd_map"]
