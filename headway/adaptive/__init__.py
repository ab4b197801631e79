"""Adaptive layers: they monitor a run, and switch its policies while it runs."""
