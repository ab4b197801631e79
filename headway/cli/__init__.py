"""The command line: one module per command of ``headway``, and what they share."""
