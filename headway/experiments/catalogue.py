"""All experiments: importing this registers them, paper by paper and in the order of their figures."""
