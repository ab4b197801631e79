"""Tests of the expressions."""
