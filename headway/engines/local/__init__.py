"""The engine `local`: one process, one scheduler thread, optionally a pool of workers."""

from headway.engines.local.engine import LocalEngine

__all__ = ["LocalEngine"]
