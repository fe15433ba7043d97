"""Exceptions: those of PEP 249, with the kind of the failure, its place and advice.

Programs branch on `kind`, never on the text. Kinds are those of the library, such as `budget`, `unauthorized`, `throttled`,
`incomplete` and `config`; for a statement `syntax`, `unknown_table`, `unknown_column`, `unknown_function`; `cancelled`; and `usage`
for a wrong call of this package.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import adbc_driver_manager
import pyarrow


@dataclass(frozen=True)
class Place:
    """Place of a failure, as far as it is known."""

    table: str | None = None
    aid: str | None = None
    """Saved search."""
    row: int | None = None
    """First row of the page, from 0."""
    line: int | None = None
    """Line of the statement, from 1."""
    column: int | None = None
    """Column of the statement, from 1."""


class Error(adbc_driver_manager.Error):
    """A failure: one line that says what, where, and what to do."""

    kind: str | None = None
    """Category, to branch on."""
    place: Place = Place()
    """Place in the service and in the statement."""
    advice: str | None = None
    """What to do. It is a part of the line."""

    def __str__(self) -> str:
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        arguments: dict[str, Any] = {
            "vendor_code": self.vendor_code,
            "sqlstate": self.sqlstate,
            "details": self.details,
        }
        if not isinstance(self, NotSupportedError):
            arguments["status_code"] = int(self.status_code)
        own = {"kind": self.kind, "place": self.place, "advice": self.advice}
        return _made, (type(self), str(self), arguments), own


class IncompleteResult(UserWarning):
    """Rows are missing, which `SET savedsearch.completeness = 'report'` allows."""


class InterfaceError(Error, adbc_driver_manager.InterfaceError):
    """A wrong use of this package."""


class DatabaseError(Error, adbc_driver_manager.DatabaseError):
    """A failure of the service or of a statement."""


class DataError(DatabaseError, adbc_driver_manager.DataError):
    """A value that cannot be processed."""


class OperationalError(DatabaseError, adbc_driver_manager.OperationalError):
    """The service, or what it grants: no connection, throttled, a budget that is too small, an incomplete result."""


class IntegrityError(DatabaseError, adbc_driver_manager.IntegrityError):
    """Never raised: nothing is written."""


class InternalError(DatabaseError, adbc_driver_manager.InternalError):
    """A defect of the driver."""


class ProgrammingError(DatabaseError, adbc_driver_manager.ProgrammingError):
    """A wrong statement, option, key or profile."""


class NotSupportedError(DatabaseError, adbc_driver_manager.NotSupportedError):
    """Something that a read-only service does not offer."""


_CLASSES = (
    DataError,
    OperationalError,
    IntegrityError,
    InternalError,
    ProgrammingError,
    NotSupportedError,
    DatabaseError,
    InterfaceError,
    Error,
)


def _term(term: dict[str, Any], of_connect: bool) -> str:
    """A term of the driver in the words of Python. Arguments of `connect` are the options and settings without their prefix."""
    kind, name, lead = term["term"], term["name"], term["lead"]
    if kind == "as_query":
        return "call execute, which also takes an Arrow table with a row for each set of parameters"
    if not of_connect:
        return str(term["words"])
    if kind == "change":
        return f"{lead}leave store out to keep nothing" if name == "store" else f"{lead}the argument {name}"
    own = {"insecure": "insecure=True", "key_file": "the option api_key_command", "base_url": "the option uri"}
    return str(own.get(kind) or name or term["words"])


def _worded(pieces: list[Any], of_connect: bool) -> str:
    return "".join(piece if isinstance(piece, str) else _term(piece, of_connect) for piece in pieces)


def typed(
    error: adbc_driver_manager.Error, parts: Iterable[tuple[str, str]] = (), *, of_connect: bool = False
) -> Error:
    """The exception of this package for one of the driver manager. `parts` are those of a failure that came without details.

    Errors `of_connect` name its arguments, which are the options of the driver without their prefix.
    """
    if isinstance(error, Error):
        return error
    found = {_text(name).removeprefix("savedsearch."): _text(value) for name, value in error.details or []} | dict(
        parts
    )
    message = found.get("message") or _line(str(error.args[0]))
    advice = found.get("advice")
    if phrase := json.loads(found.get("phrase", "null")):
        message, advice = _worded(phrase["line"], of_connect), _worded(phrase["advice"] or [], of_connect) or None
    cls = next(cls for cls in _CLASSES if isinstance(error, getattr(adbc_driver_manager, cls.__name__)))
    arguments: dict[str, Any] = {"vendor_code": error.vendor_code, "sqlstate": error.sqlstate, "details": error.details}
    if cls is not NotSupportedError:
        arguments["status_code"] = error.status_code
    made = cls(message, **arguments)
    # What the driver manager itself refuses has no kind.
    made.kind, made.advice = found.get("kind", "usage"), advice
    number = {name: int(found[name]) for name in ("row", "line", "column") if name in found}
    made.place = Place(table=found.get("table"), aid=found.get("aid"), **number)
    return made


def of_status(
    status: adbc_driver_manager.AdbcStatusCode, message: str, sqlstate: str | None
) -> adbc_driver_manager.Error:
    """The exception of the driver manager for a status, as its calls raise it."""
    statuses = adbc_driver_manager.AdbcStatusCode
    if status == statuses.NOT_IMPLEMENTED:
        return adbc_driver_manager.NotSupportedError(message, sqlstate=sqlstate)
    classes: dict[int, type[adbc_driver_manager.Error]] = {
        statuses.UNKNOWN: adbc_driver_manager.OperationalError,
        statuses.IO: adbc_driver_manager.OperationalError,
        statuses.CANCELLED: adbc_driver_manager.OperationalError,
        statuses.TIMEOUT: adbc_driver_manager.OperationalError,
        statuses.INVALID_DATA: adbc_driver_manager.DataError,
        statuses.INTEGRITY: adbc_driver_manager.IntegrityError,
        statuses.INTERNAL: adbc_driver_manager.InternalError,
    }
    return classes.get(status, adbc_driver_manager.ProgrammingError)(message, status_code=status, sqlstate=sqlstate)


def warn(line: str) -> None:
    """Warns of missing rows, at the line of the program that called this package."""
    level, frame = 1, sys._getframe()
    # The driver manager calls methods of this package too.
    inner = (__package__, adbc_driver_manager.__name__)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in inner:
        level, frame = level + 1, frame.f_back
    warnings.warn(f"incomplete result: {line}", IncompleteResult, stacklevel=level)


def _made(cls: type[Error], message: str, arguments: dict[str, Any]) -> Error:
    return cls(message, **arguments)


def wrong(message: str, advice: str) -> ProgrammingError:
    """The error of a wrong call, with what to do."""
    status = adbc_driver_manager.AdbcStatusCode.INVALID_ARGUMENT
    error = ProgrammingError(f"{message}; {advice}", status_code=status, sqlstate="22023")
    error.kind, error.advice = "usage", advice
    return error


def misused(message: str, advice: str) -> InterfaceError:
    """The error for a use of something in a state that does not allow it, such as a closed cursor, with what to do."""
    status = adbc_driver_manager.AdbcStatusCode.INVALID_STATE
    error = InterfaceError(f"{message}; {advice}", status_code=status)
    error.kind, error.advice = "usage", advice
    return error


@contextmanager
def in_range() -> Iterator[None]:
    """Converts values of Arrow, of which some have no counterpart in Python."""
    try:
        yield
    except (OverflowError, ValueError) as error:
        if isinstance(error, (pyarrow.ArrowException, Error)):
            raise
        advice = "read them as Arrow data, or cast them to text in the statement"
        message = f"the rows have a value that Python has no type for: {_line(str(error))}; {advice}"
        unfit = DataError(message, status_code=adbc_driver_manager.AdbcStatusCode.INVALID_DATA, sqlstate="22003")
        unfit.kind, unfit.advice = "usage", advice
        raise unfit from None


def require(package: str) -> None:
    """Imports a package that only some methods need. If it is not installed, the error names it."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise misused(f"{package} is not installed", f"install it with `pip install {package}`") from None


def uncopied(self: Any, protocol: Any) -> Any:
    """`__reduce_ex__` of what belongs to an open connection: `copy`, `deepcopy` and `pickle` raise an `InterfaceError`."""
    name = type(self).__name__
    advice = {"Query": "make another with sql()", "Cursor": "open another with cursor()"}
    message = f"a {name} can be neither copied nor pickled"
    raise misused(message, advice.get(name, "open another with savedsearch.connect"))


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


def _line(text: str) -> str:
    """The driver's line without the status in front of it and the codes behind it, which the exception has as attributes."""
    head, separator, rest = text.partition(": ")
    line = rest if separator and head.isupper() and head.replace("_", "").isalpha() else text
    for mark in (". Vendor code:", ". SQLSTATE:"):
        line = line.partition(mark)[0]
    return " ".join(line.split())
