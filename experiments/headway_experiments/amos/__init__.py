"""Experiments of the paper on AMoS: choosing among scheduling algorithms by several objectives."""
