"""Bad network files, as data."""
