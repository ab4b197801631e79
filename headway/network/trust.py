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

    # Checks. `who` is the prefix of the message and names the place in the file; `error` is the type raised.

    def check_path(
        self, path: str | Path, base: Path | None, who: str, error: type[HeadwayError], *, write: bool = False
    ) -> None:
        """Raise `error` unless a path or URI may be read, or written; a relative path is resolved against `base`."""
        text = str(path)
        if "\0" in text:
            raise error(f"{who}: '{_show(text)}' has a NUL character, and no path has one")
        if text == STANDARD:
            if not self.own and STANDARD not in self.paths:
                raise error(_refusal(who, "use standard input or output", "--allow-path -"))
            return
        if _SCHEME.match(text) and not _is_file(text):
            self._check_uri(text, who, error, write)
        elif not self.own:
            self._check_local(text, base, who, error, write)

    def check_pattern(self, path: str, who: str, error: type[HeadwayError]) -> None:
        """Raise `error` for a stranger's path with wildcards that Spark would expand: they can escape a folder."""
        if not self.own and _PATTERN.search(path):
            raise error(f"{who}: {_stranger('use wildcards')}, and '{_show(path)}' has one; name a folder")

    def check_hosts(self, text: str, who: str, error: type[HeadwayError]) -> None:
        """Raise `error` unless every host of a list such as ``a:9092,b:9092`` may be contacted."""
        for part in text.split(","):
            found = _HOST.fullmatch(part.strip())
            if found is None:
                if not self.own:
                    raise error(f"{who}: '{_show(part)}' is not a plain host or host:port, {_NEEDED}")
                continue
            self._check_host(found[1], found[2], who, error)

    def check_format(
        self, name: str, known: Sequence[str], who: str, error: type[HeadwayError], *, kind: str = "format"
    ) -> None:
        """Raise `error` unless the format is explicitly allowed or, for one's own files, in `known`."""
        if name.lower() in {one.lower() for one in self.formats} or (self.own and name.lower() in known):
            return
        if not self.own:
            raise error(_refusal(who, f"use the {kind} {_quoted(name)}", f"--allow-format {_word(name)}", self.formats))
        raise error(
            f"{who}: {unknown(kind, _show(name), known)}; if you trust its code, --allow-format {_word(name)} "
            "lets it be used"
        )

    def check_option(
        self, name: str, format_: str, known: Sequence[str], own: Sequence[str], who: str, error: type[HeadwayError]
    ) -> None:
        """Raise `error` unless the option is in `known`, explicitly allowed or, for one's own files, in `own`."""
        lowered = name.lower()
        if lowered in known or (self.own and lowered in own) or _matches(lowered, self.options):
            return
        if lowered in own:
            raise error(_refusal(who, f"give the option {_quoted(name)} of {format_}", f"--allow-option {_word(name)}"))
        raise error(
            f"{who}: option '{_show(name)}' of {format_} is not known to be harmless; choices: "
            f"{choices([*known, *(own if self.own else ())])}; --allow-option {_word(name)} lets it be given"
        )

    def check_table(self, name: str, who: str, error: type[HeadwayError]) -> None:
        """Raise `error` unless a table of Spark's catalog may be named."""
        if not self.own and not _matches(name.lower(), self.tables):
            what = f"use the table {_quoted(name)} of Spark"
            raise error(_refusal(who, what, f"--allow-table {_word(name)}", self.tables))

    def _check_local(self, text: str, base: Path | None, who: str, error: type[HeadwayError], write: bool) -> None:
        if _is_file(text):
            parts = urlsplit(text)
            if parts.netloc not in ("", "localhost") or parts.query or parts.fragment or unquote(text) != text:
                raise error(f"{who}: '{_show(text)}' is not a plain file: URI, {_NEEDED}")
            text = parts.path
        real = os.path.realpath(Path(text) if base is None else base / text)
        roots = self.paths if write else (*self.paths, *self.read_only)
        if not any(_is_under(real, root) for root in roots):
            verb, mode = ("write", "") if write else ("read", ":ro")
            raise error(
                f"{who}: {_stranger(f'{verb} {_quoted(real)}')}; folders that it may {verb}: {choices(roots)}; "
                f"--allow-path DIR{mode} adds one"
            )

    def _check_uri(self, text: str, who: str, error: type[HeadwayError], write: bool) -> None:
        if self.own and (not self.offline or ":/" not in text):
            return
        if not self.own and (not _PLAIN_URI.fullmatch(text) or ".." in text.split("/")):
            raise error(f"{who}: '{_show(text)}' is not a plain URI such as s3://bucket/folder, {_NEEDED}")
        roots = self.paths if write else (*self.paths, *self.read_only)
        if any(_SCHEME.match(root) and (text + "/").startswith(root) for root in roots):
            return
        host = _HOST.fullmatch(text.partition("://")[2].partition("/")[0].rpartition("@")[2])
        if host is None:
            raise error(f"{who}: '{_show(text)}' names no host that could be allowed")
        self._check_host(host[1], host[2], who, error)

    def _check_host(self, host: str, port: str | None, who: str, error: type[HeadwayError]) -> None:
        if self.own and not self.offline:
            return
        name = host.lower()
        if _matches(name, self.hosts) or (port is not None and _matches(f"{name}:{port}", self.hosts)):
            return
        flag = f"--allow-host {_show(host)}"
        if self.own:
            raise error(f"{who}: a check contacts nobody, and this is on '{_show(host)}'; {flag} lets it")
        raise error(_refusal(who, f"contact {_quoted(host)}", flag, self.hosts))


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


def _stranger(what: str) -> str:
    return f"a file from a stranger may not {what}"


def _refusal(who: str, what: str, flag: str, allowed: Sequence[str] | None = None) -> str:
    """Return the message for a stranger's file: what is not allowed, what is, and the flag that allows it."""
    listed = "" if allowed is None else f" allowed: {choices(allowed)};"
    return f"{who}: {_stranger(what)};{listed} {flag} lets it"


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
