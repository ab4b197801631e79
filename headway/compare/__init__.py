"""Which policy suits a network: simulate, or replay, it by several of them, and recommend one."""
