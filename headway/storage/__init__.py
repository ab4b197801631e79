"""Queues in memory, and the durable arrival log."""
