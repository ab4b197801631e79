"""The single table of all options of a run."""
