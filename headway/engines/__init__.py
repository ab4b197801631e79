"""Engines: what carries a plan out."""
