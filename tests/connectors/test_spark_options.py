"""Formats and options of Spark that a file may name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.connectors.spark_options import FORMATS, check_settings
from headway.errors import InputError
from headway.network.trust import OWN, Trust

KAFKA = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "t"}
STRANGER = Trust(formats=("kafka", "jdbc", "socket", "parquet"), hosts=("broker", "db"))


def _ask(format_: str, options: dict[str, str], trust: Trust = OWN) -> None:
    check_settings(format_, options, trust, "source 's': spark", InputError)


LOADS_CODE = [
    ("jdbc", "driver", "evil.Driver"),
    ("jdbc", "sessionInitStatement", "call x()"),
    ("jdbc", "prepareQuery", "call x();"),
    ("jdbc", "connectionProvider", "x"),
    ("jdbc", "createTableOptions", "; drop table x"),
    ("kafka", "kafka.sasl.jaas.config", "com.sun.security.auth.module.JndiLoginModule required;"),
    ("kafka", "kafka.metric.reporters", "evil.Reporter"),
    ("kafka", "kafka.interceptor.classes", "evil.Interceptor"),
    ("kafka", "kafka.sasl.login.callback.handler.class", "evil.Handler"),
    ("parquet", "parquet.crypto.factory.class", "evil.Factory"),
    ("parquet", "fs.file.impl", "evil.FileSystem"),
    ("csv", "io.compression.codecs", "evil.Codec"),
    ("csv", "compression", "evil.package.Codec"),
    ("delta", "replaceWhere", "reflect('a', 'b')"),
    ("json", "path", "/etc/passwd"),
    ("json", "paths", '["/etc/passwd"]'),
    ("json", "checkpointLocation", "/etc"),
]


@pytest.mark.parametrize(("format_", "option", "value"), LOADS_CODE)
def test_options_that_are_not_known_to_be_harmless(format_: str, option: str, value: str) -> None:
    for trust in (OWN, replace(STRANGER, formats=(format_,))):
        for spelt in (option, option.upper()):
            with pytest.raises(InputError, match=f"source 's': spark: options: option '{spelt}'") as caught:
                _ask(format_, {spelt: value}, trust)
            assert len(str(caught.value)) < 3000
    if option != "compression":
        _ask(format_, {option: value}, replace(OWN, options=(option,)))
        _ask(format_, {option: value}, replace(OWN, options=("*",)))
        _ask(format_, {option: value}, replace(STRANGER, formats=(format_,), options=(option,)))


def test_formats() -> None:
    for format_ in FORMATS:
        _ask(format_, {})
        with pytest.raises(InputError, match=f"may not use the format '{format_}'.*--allow-format {format_} lets it"):
            _ask(format_, {}, Trust())
    for format_ in ("nonesuch", "org.apache.spark.sql.execution.datasources.jdbc.JdbcRelationProvider", "a b"):
        with pytest.raises(InputError, match=r"unknown format .*--allow-format"):
            _ask(format_, {})
        _ask(format_, {}, replace(OWN, formats=(format_,)))


def test_hosts_in_options() -> None:
    _ask("kafka", KAFKA, STRANGER)
    _ask("socket", {"host": "broker", "port": "5"}, STRANGER)
    _ask("jdbc", {"url": "jdbc:postgresql://db:5432/shop", "dbtable": "x"}, STRANGER)
    for format_, options in (
        ("kafka", KAFKA | {"kafka.bootstrap.servers": "broker:9092,evil:9092"}),
        ("kafka", KAFKA | {"KAFKA.bootstrap.servers": "evil:9092"}),
        ("socket", {"host": "169.254.169.254", "port": "80"}),
        ("jdbc", {"url": "jdbc:postgresql://evil/shop"}),
        ("jdbc", {"url": "jdbc:postgresql://db/shop?socketFactory=evil.Factory"}),
        ("jdbc", {"url": "jdbc:mysql://db/shop?autoDeserialize=true"}),
        ("jdbc", {"url": "jdbc:mysql://db,evil/shop"}),
        ("jdbc", {"url": "jdbc:h2:mem:x;INIT=RUNSCRIPT FROM 'http://evil/x.sql'"}),
        ("jdbc", {"url": "jdbc:derby:/etc/x;create=true"}),
    ):
        with pytest.raises(InputError, match=r"source 's': spark: options: .*stranger"):
            _ask(format_, options, STRANGER)
        _ask(format_, options)


def test_what_a_stranger_may_not_give_but_one_s_own_file_may() -> None:
    for format_, option in (("kafka", "kafka.ssl.keystore.location"), ("parquet", "cleanSource"), ("jdbc", "password")):
        _ask(format_, {option: "x"})
        with pytest.raises(InputError, match=rf"may not give the option '{option}'.*--allow-option {option} lets it"):
            _ask(format_, {option: "x"}, STRANGER)
