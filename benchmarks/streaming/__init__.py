"""Headway on Spark against plain Structured Streaming: ``python -m benchmarks.streaming``."""
