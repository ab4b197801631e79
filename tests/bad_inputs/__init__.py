"""Bad inputs and arguments."""
