"""What a network file may name: the single place that decides on paths, formats, options, hosts and tables.

One's own file may name anything that cannot run code. A file from a stranger may name only what the operator of the
process allows. The checks have no side effects, but they resolve symbolic links, to compare real paths. What a run is
given directly (`--input`, `--output`, Python) comes from the operator and is not checked here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from headway.errors import HeadwayError, check_known, choices, unknown

STANDARD = "-"
"""The path that means standard input or output."""
LEVELS = ("own", "stranger")
READ_ONLY = ":ro"
"""What stands behind a folder on the command line that may only be read."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_PLAIN_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://[A-Za-z0-9._-]+(:[0-9]+)?(/[^?#%\\\s{}*\[\]]*)?")
"""A URI that every parser reads the same way: no user, query, wildcards or escapes."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]+))?")
_PATTERN = re.compile(r"[*?{}\[\]\\]")
_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Trust:
    """The author of a network file, and what it may name. ``Trust()`` is a stranger who may name nothing.

    `paths` are folders that the file may read and write, `read_only` folders that it may only read; a URI such as
    ``s3://bucket/day`` is a remote folder, and ``-`` is standard input and output. `hosts` are machines and buckets
    that may be contacted (``name`` or ``name:port``), `tables` those of Spark's catalog. `formats` and `options` are
    Spark's, in addition to those known to be harmless, also for one's own files. Hosts, tables and options may be
    patterns with ``*``. With `offline`, only machines listed in `hosts` are contacted.
    """

    own: bool = False
    paths: Sequence[str] = ()
    read_only: Sequence[str] = ()
    formats: Sequence[str] = ()
    options: Sequence[str] = ()
    hosts: Sequence[str] = ()
    tables: Sequence[str] = ()
    offline: bool = False

    def __post_init__(self) -> None:
        """Normalise lists to tuples, and resolve folders now, because the working directory may change."""
        for one in fields(self):
            given = getattr(self, one.name)
            if one.name in ("own", "offline"):
                if not isinstance(given, bool):
                    raise HeadwayError(f"trust: {one.name} is true or false, not {given!r}")
                continue
            if isinstance(given, str | Path):
                given = (given,)
            if not isinstance(given, Sequence) or not all(isinstance(item, str | Path) and str(item) for item in given):
                raise HeadwayError(f"trust: {one.name} is a list of texts, not {given!r}")
            items = tuple(str(item) for item in given)
            if one.name in ("paths", "read_only"):
                items = tuple(_root(item) for item in items)
            object.__setattr__(self, one.name, items)

    def by_operator(self) -> Trust:
        """Return the trust for what the run itself is given: everything, plus the formats and options allowed here."""
        return replace(self, own=True, offline=False)

    def contacting_nobody(self) -> Trust:
        """Return the trust for a mere check, which contacts only machines listed in `hosts`."""
        return replace(self, offline=True)

    # Checks. They raise a HeadwayError; the caller puts the place in the file before it (`headway.errors.within`).

    def check_path(self, path: str | Path, base: Path | None, *, write: bool = False) -> None:
        """Check that a path or URI may be read, or written; a relative path is resolved against `base`."""
        text = str(path)
        if "\0" in text:
            raise HeadwayError(f"{_quoted(text)} has a NUL character, and no path has one")
        roots = self.paths if write else (*self.paths, *self.read_only)
        if text == STANDARD:
            if not self.own and STANDARD not in self.paths:
                raise _refusal("use standard input or output", "--allow-path -")
        elif _SCHEME.match(text) and not _is_file(text):
            self._check_uri(text, roots)
        elif not self.own:
            _check_local(text, base, roots, *(("write", "") if write else ("read", READ_ONLY)))

    def check_pattern(self, path: str) -> None:
        """Check that a stranger's path has no wildcards that Spark would expand: they can escape a folder."""
        if not self.own and _PATTERN.search(path):
            raise HeadwayError(f"{_stranger('use wildcards')}, and {_quoted(path)} has one; name a folder")

    def check_hosts(self, text: str) -> None:
        """Check that every host of a list such as ``a:9092,b:9092`` may be contacted."""
        for part in text.split(","):
            found = _HOST.fullmatch(part.strip())
            if found is not None:
                self._check_host(found[1], found[2])
            elif not self.own:
                raise HeadwayError(f"{_quoted(part)} is not a plain host or host:port, {_NEEDED}")

    def check_format(self, name: str, known: Sequence[str], kind: str = "format") -> None:
        """Check that the format is explicitly allowed or, for one's own files, in `known`."""
        if name.lower() in {one.lower() for one in self.formats} or (self.own and name.lower() in known):
            return
        flag = f"--allow-format {_word(name)}"
        if not self.own:
            raise _refusal(f"use the {kind} {_quoted(name)}", flag, self.formats)
        raise HeadwayError(f"{unknown(kind, _show(name), known)}; if you trust its code, {flag} lets it be used")

    def check_option(self, name: str, format_: str, known: Sequence[str], own: Sequence[str]) -> None:
        """Check that the option is in `known`, explicitly allowed or, for one's own files, in `own`."""
        lowered, flag = name.lower(), f"--allow-option {_word(name)}"
        if lowered in known or (self.own and lowered in own) or _matches(lowered, self.options):
            return
        if lowered in own:
            raise _refusal(f"give the option {_quoted(name)} of {format_}", flag)
        raise HeadwayError(
            f"option {_quoted(name)} of {format_} is not known to be harmless; choices: "
            f"{choices([*known, *(own if self.own else ())])}; {flag} lets it be given"
        )

    def check_table(self, name: str) -> None:
        """Check that a table of Spark's catalog may be named."""
        if not self.own and not _matches(name.lower(), self.tables):
            raise _refusal(f"use the table {_quoted(name)} of Spark", f"--allow-table {_word(name)}", self.tables)

    def _check_uri(self, text: str, roots: Sequence[str]) -> None:
        if self.own and (not self.offline or ":/" not in text):
            return
        if not self.own and (not _PLAIN_URI.fullmatch(text) or ".." in text.split("/")):
            raise HeadwayError(f"{_quoted(text)} is not a plain URI such as s3://bucket/folder, {_NEEDED}")
        if any(_SCHEME.match(root) and (text + "/").startswith(root) for root in roots):
            return
        host = _HOST.fullmatch(text.partition("://")[2].partition("/")[0].rpartition("@")[2])
        if host is None:
            raise HeadwayError(f"{_quoted(text)} names no host that could be allowed")
        self._check_host(host[1], host[2])

    def _check_host(self, host: str, port: str | None) -> None:
        if self.own and not self.offline:
            return
        name = host.lower()
        if _matches(name, self.hosts) or (port is not None and _matches(f"{name}:{port}", self.hosts)):
            return
        flag = f"--allow-host {_show(host)}"
        if self.own:
            raise HeadwayError(f"a check contacts nobody, and this is on {_quoted(host)}; {flag} lets it")
        raise _refusal(f"contact {_quoted(host)}", flag, self.hosts)


OWN = Trust(own=True)
STRANGER = Trust()


def read_trust(given: object) -> Trust:
    """Return the trust for a Python argument: ``own``, ``stranger``, a mapping of settings, or a Trust."""
    if isinstance(given, Trust):
        return given
    if isinstance(given, Mapping):
        check_known("key", given, [one.name for one in fields(Trust)], HeadwayError, "trust")
        return Trust(**given)
    if isinstance(given, str) and given in LEVELS:
        return OWN if given == "own" else STRANGER
    raise HeadwayError(f"trust: {unknown('level', _show(str(given)), LEVELS)}, or a headway.Trust")


def _check_local(text: str, base: Path | None, roots: Sequence[str], verb: str, mode: str) -> None:
    if _is_file(text):
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or unquote(text) != text:
            raise HeadwayError(f"{_quoted(text)} is not a plain file: URI, {_NEEDED}")
        text = parts.path
    real = os.path.realpath(Path(text) if base is None else base / text)
    if not any(_is_under(real, root) for root in roots):
        raise HeadwayError(
            f"{_stranger(f'{verb} {_quoted(real)}')}; folders that it may {verb}: {choices(roots)}; "
            f"--allow-path DIR{mode} adds one"
        )


def _stranger(what: str) -> str:
    return f"a file from a stranger may not {what}"


def _refusal(what: str, flag: str, allowed: Sequence[str] | None = None) -> HeadwayError:
    """Return the error for a stranger's file: what is not allowed, what is, and the flag that allows it."""
    listed = "" if allowed is None else f" allowed: {choices(allowed)};"
    return HeadwayError(f"{_stranger(what)};{listed} {flag} lets it")


_NEEDED = "as a file from a stranger must have it"


def _quoted(text: str) -> str:
    return f"'{_show(text)}'"


def _show(text: str) -> str:
    """Make text from a file safe for a message: on one line and truncated."""
    plain = "".join(one if one.isprintable() else "?" for one in text[: _SHOWN + 1])
    return plain if len(plain) <= _SHOWN else plain[:_SHOWN] + "…"


def _word(name: str) -> str:
    """Return a name for use on a command line, or a placeholder if it is not suitable."""
    return name if re.fullmatch(r"[\w.:-]{1,80}", name) else "NAME"


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, one.lower()) for one in patterns)


def _is_file(text: str) -> bool:
    return text.lower().startswith("file:")


def _root(text: str) -> str:
    if text == STANDARD:
        return text
    if _SCHEME.match(text) and not _is_file(text):
        return text.rstrip("/") + "/"
    if "\0" in text:
        raise HeadwayError("trust: a path has a NUL character")
    return os.path.realpath(unquote(urlsplit(text).path) if _is_file(text) else text)


def _is_under(real: str, root: str) -> bool:
    return root != STANDARD and not _SCHEME.match(root) and Path(real).is_relative_to(root)
