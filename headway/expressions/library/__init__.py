"""The built-in functions, by group. Each has a name, a signature for documentation and a builder of its node."""
