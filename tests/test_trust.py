"""What a network file may name."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import HeadwayError, InputError
from headway.network.trust import OWN, STRANGER, Trust, read_trust


def _ask(trust: Trust, path: str, base: Path | None = None, *, write: bool = False) -> None:
    trust.check_path(path, base, "source 's': source", InputError, write=write)


def test_one_s_own_file_names_any_path(tmp_path: Path) -> None:
    for path in ("/etc/passwd", "../x.csv", "-", "s3://bucket/x", "http://host/x", "file:/x"):
        _ask(OWN, path, tmp_path)
        _ask(OWN, path, tmp_path, write=True)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x.csv",
        "x/../../x.csv",
        "",
        ".",
        "-",
        "~/x.csv",
        "file:/etc/passwd",
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "file://host/data/x.csv",
        "file:DATA/%2e%2e/x.csv",
        "s3://bucket/x",
        "s3a:bucket",
        "http://169.254.169.254/latest",
        "hdfs:///x",
        "x\0.csv",
        "link/x.csv",
        "data/link/x.csv",
        "data-secret/x.csv",
    ],
)
@pytest.mark.parametrize("write", [False, True])
def test_a_stranger_s_file_stays_in_the_folders_that_are_allowed(tmp_path: Path, path: str, write: bool) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data-secret").mkdir()
    for link in ("link", "data/link"):
        (tmp_path / link).symlink_to("/etc")
    path = path.replace("DATA", str(tmp_path / "data"))
    trust = Trust(paths=(str(tmp_path / "data"),))
    with pytest.raises(InputError, match=r"source 's': source: .*(stranger|NUL)") as caught:
        _ask(trust, path, tmp_path, write=write)
    assert len(str(caught.value)) < 600
    assert "\0" not in str(caught.value)


def test_what_is_allowed_passes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "way").symlink_to(data)
    trust = Trust(paths=[str(tmp_path / "way"), "-", "s3://bucket/day"], read_only=str(tmp_path / "old"))
    for path in ("data/x.csv", "data/a/../x.csv", "way/x.csv", str(data / "x.csv"), "-", f"file:{data}/x.csv"):
        _ask(trust, path, tmp_path)
        _ask(trust, path, tmp_path, write=True)
    _ask(trust, "x.csv", data, write=True)
    _ask(trust, "s3://bucket/day/1.parquet")
    _ask(trust, "s3://bucket/day")
    _ask(trust, "old/x.csv", tmp_path)
    with pytest.raises(InputError, match=r"may not write '.*old/x.csv'; .*--allow-path DIR adds one"):
        _ask(trust, "old/x.csv", tmp_path, write=True)
    for path in ("s3://bucket/night", "s3://bucket/days", "s3://bucket/day/../night", "s3://bucket"):
        with pytest.raises(InputError, match="stranger"):
            _ask(trust, path)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://evil/x",
        "s3://me:key@bucket/x",
        "s3://bucket@evil/x",
        "s3://bucket\\@evil/x",
        "s3://bucket/x?endpoint_override=evil",
        "s3://bucket/x#y",
        "s3://bucket/%2e%2e/x",
        "s3://bucket/{a,../b}",
        "s3:///x",
        "s3://[::1/x",
    ],
)
def test_only_allowed_hosts_are_contacted(uri: str) -> None:
    trust = Trust(hosts=("bucket", "*.lake.example", "db:5432"))
    _ask(trust, "s3://bucket/x")
    _ask(trust, "S3A://BUCKET/x")
    _ask(trust, "gs://eu.lake.example/x", write=True)
    _ask(trust, "http://db:5432/x")
    for port in ("", ":5433"):
        with pytest.raises(InputError, match="--allow-host db"):
            _ask(trust, f"http://db{port}/x")
    with pytest.raises(InputError, match=r"stranger|--allow-host|names no host"):
        _ask(trust, uri)


def test_a_check_contacts_nobody_without_leave() -> None:
    trust = Trust(own=True, hosts=("bucket",)).contacting_nobody()
    _ask(trust, "s3://bucket/x")
    _ask(trust, "/etc/passwd")
    with pytest.raises(InputError, match="a check contacts nobody, and this is on 'other'; --allow-host other lets it"):
        _ask(trust, "s3://other/x")
    _ask(trust.by_operator(), "s3://other/x")


def test_hosts_in_lists() -> None:
    trust = Trust(hosts=("a", "b:9092"))
    trust.check_hosts("a:9092, b:9092", "who", InputError)
    for text in ("a:9092,c:9092", "b:9093", "a:9092,", "a:9092;c", "a/x", "user@a"):
        with pytest.raises(InputError, match="who: "):
            trust.check_hosts(text, "who", InputError)
    OWN.check_hosts("anything at all", "who", InputError)


def test_levels_and_settings() -> None:
    assert read_trust("own") == OWN
    assert read_trust("stranger") == STRANGER == Trust()
    assert read_trust({"paths": ["/data"], "formats": "kafka"}) == Trust(paths=("/data",), formats=("kafka",))
    assert read_trust(OWN) is OWN
    with pytest.raises(HeadwayError, match="trust: unknown level 'strange'; did you mean 'stranger'"):
        read_trust("strange")
    with pytest.raises(HeadwayError, match="trust: unknown key 'path'; did you mean 'paths'"):
        read_trust({"path": "/data"})
    with pytest.raises(HeadwayError, match="trust: own is true or false, not 'no'"):
        read_trust({"own": "no"})
    with pytest.raises(HeadwayError, match="trust: hosts is a list of texts, not 5"):
        Trust(hosts=5)  # type: ignore[arg-type]


def test_folders_stay_where_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trust = Trust(paths=(".",))
    monkeypatch.chdir("/")
    _ask(trust, str(tmp_path / "x.csv"))
    with pytest.raises(InputError, match="stranger"):
        _ask(trust, "/x.csv")
