"""Tests of static tables and stored data sets."""
