"""Headway's kernels."""
