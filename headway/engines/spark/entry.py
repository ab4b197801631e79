"""Where the Spark engine makes itself known. Spark is loaded when a run starts, so that other engines do not wait."""

from headway.connectors.sessions import register_session
from headway.engines.base import Engine, register_engine


def _make() -> Engine:
    from headway.engines.spark.engine import SparkEngine

    return SparkEngine()


def _open_session() -> object:
    from headway.engines.spark.session import open_session

    return open_session(None)


register_engine("spark", _make)
register_session(_open_session)
