"""The one table of options of a run."""
