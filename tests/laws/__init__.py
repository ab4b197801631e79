"""Laws of schedules and the papers' worked examples, run in virtual time."""
