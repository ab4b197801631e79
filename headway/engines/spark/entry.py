"""Registers the Spark engine. Spark is imported when a run starts, so that other engines need not wait for it."""

from headway.connectors.spark import register_session
from headway.engines.runs import Engine, register_engine
from headway.extras import need_extra


def _make() -> Engine:
    need_extra("spark", "the engine 'spark'", "the engines 'local' and 'sim' (--engine local) work without it")
    from headway.engines.spark.engine import SparkEngine

    return SparkEngine()


def _open_session() -> object:
    need_extra("spark", "a source, sink or table of Spark's")
    from headway.engines.spark.driver.session import open_session

    return open_session(None)


register_engine("spark", _make)
register_session(_open_session)
