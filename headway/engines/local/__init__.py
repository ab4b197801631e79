"""The local engine: one process, one scheduler thread, a pool of workers."""

from headway.engines.local.engine import LocalEngine

__all__ = ["LocalEngine"]
