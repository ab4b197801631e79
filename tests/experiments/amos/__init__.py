"""Tests of the experiments of the paper on AMoS."""
