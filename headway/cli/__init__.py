"""Headway's cli."""
