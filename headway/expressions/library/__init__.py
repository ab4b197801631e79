"""The built-in functions, by group. Each is a name, a signature for people and a builder of nodes."""
