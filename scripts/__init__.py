"""Scripts for those who work on Headway."""
