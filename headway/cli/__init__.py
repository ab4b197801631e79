"""The command line: ``headway check``, ``headway run``, ``headway policies``."""
