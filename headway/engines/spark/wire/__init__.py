"""What driver and workers share: the work of a unit, and trains as they travel."""
