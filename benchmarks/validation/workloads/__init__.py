"""Access models of the measured kernels, one workload a row, and the orders that they were launched in."""
