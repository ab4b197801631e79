"""Sharaf and others, Preemptive Rate-based Operator Scheduling: figures 3 to 12."""
