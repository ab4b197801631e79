"""Tests of what the engines in this process share."""
