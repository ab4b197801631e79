"""Engines: they execute the plans of a policy."""
