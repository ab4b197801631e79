"""What runs on the driver: arrivals, grants, the state directory and delivery."""
