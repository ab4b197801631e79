"""Living networks as data: fragments, fingerprints, and what a change does to a running network. Nothing here runs."""
