"""One behaviour suite, run on every engine and under every policy, against the naive reference."""
