"""Experiments of "Aurora: a new model and architecture for data stream management" (VLDB Journal 2003)."""
