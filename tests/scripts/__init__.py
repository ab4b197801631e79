"""Scripts for setting up."""
