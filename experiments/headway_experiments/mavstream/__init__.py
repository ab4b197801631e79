"""The experiments of the paper on MavStream's runtime optimizer."""
