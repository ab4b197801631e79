"""Kernels: the executable form of boxes."""
