"""Benchmarks: speed against other libraries, box calls, latency and memory. ``python -m benchmarks`` runs all."""
