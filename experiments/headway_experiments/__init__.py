"""The papers' experiments: each a setting, runs, a claim that can fail, and a plot.

`headway experiment list` names them. Modules of experiments register themselves when `catalogue` imports them.
"""
