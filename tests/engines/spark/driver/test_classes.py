"""The archive of Spark's classes: where it is, and when a JVM maps it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headway.engines.spark.driver.session import ARCHIVE_SETTING, check_java, class_archive, map_archive, record_archive
from headway.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_each_spark_and_java_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert class_archive("17.0.15").name.endswith("-java-17.0.15.jsa")
    assert class_archive("17.0.15").is_relative_to(sys.prefix)
    assert class_archive("17.0.15") != class_archive("21.0.1")
    monkeypatch.setattr("headway.engines.spark.driver.session.version", lambda name: f"the {name} of another day")
    assert "the pyspark of another day" in class_archive("17.0.15").name


def test_only_what_is_there_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ARCHIVE_SETTING, raising=False)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert map_archive("17.0.15") == ""
    class_archive("17.0.15").parent.mkdir(parents=True)
    class_archive("17.0.15").touch()
    assert map_archive("17.0.15") == f'"-XX:SharedArchiveFile={class_archive("17.0.15")}"'
    assert map_archive("17.0.16") == ""


def test_another_one_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ARCHIVE_SETTING, str(tmp_path / "other.jsa"))
    assert map_archive("17") == ""
    (tmp_path / "other.jsa").touch()
    assert map_archive("17") == f'"-XX:SharedArchiveFile={tmp_path / "other.jsa"}"'
    monkeypatch.setenv(ARCHIVE_SETTING, "")
    assert map_archive("17") == ""
    (tmp_path / 'a" -Dx="b').touch()
    monkeypatch.setenv(ARCHIVE_SETTING, str(tmp_path / 'a" -Dx="b'))
    assert map_archive("17") == ""


def test_a_run_that_records_maps_nothing(tmp_path: Path) -> None:
    environment = record_archive(tmp_path / "new.jsa")
    assert environment[ARCHIVE_SETTING] == ""
    assert str(tmp_path / "new.jsa") in environment["SPARK_SUBMIT_OPTS"]
    with pytest.raises(RunError, match="there is a quote in its name"):
        record_archive(tmp_path / 'new".jsa')


def test_the_session_maps_it(spark: SparkSession) -> None:
    wanted = map_archive(check_java()).strip('"')
    beans = spark.sparkContext._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    given = list(beans.getRuntimeMXBean().getInputArguments())
    assert [one for one in given if "SharedArchiveFile" in one] == ([wanted] if wanted else [])
