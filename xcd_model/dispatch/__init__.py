"""Which XCD, CU and slot a workgroup runs on, and how many fit a CU."""
