"""Comparing policies for a network: simulate or replay it with several of them, and recommend one."""
