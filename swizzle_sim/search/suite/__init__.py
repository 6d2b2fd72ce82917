"""The suite as a whole: facts of each kernel; launch order, best family and bound of every kernel in one table."""
