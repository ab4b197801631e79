"""What runs in Spark's Python processes: the source, the tasks and the kernels. Nothing of the driver is imported."""
