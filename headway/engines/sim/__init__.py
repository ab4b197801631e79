"""The engine `sim`: networks in virtual time. Importing it registers the engine."""

from headway.engines.sim.engine import SimEngine

__all__ = ["SimEngine"]
