"""Experiments of the paper on operator scheduling in Aurora."""
