"""Adaptive layers: they watch how a run does, and change its policies while it runs."""
