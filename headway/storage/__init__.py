"""Headway's storage."""
