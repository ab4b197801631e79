"""Introspection and load shedding: is there too much, who suffers, and what to drop, where and how much of it."""
