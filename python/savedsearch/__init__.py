"""SQL over a saved-search service (V4): your saved searches, and the posts and articles that they found, as tables.

>>> import savedsearch
>>> mentions = savedsearch.sql("SELECT source, count(*) AS n FROM mentions GROUP BY source ORDER BY n DESC")
>>> print(mentions.estimate())
>>> mentions.pl()

Without an address, everything runs on built-in demo data. `connect` names a service and a key, and returns a DB-API connection
(PEP 249). Results are Arrow streams, which polars, pandas, DuckDB and others read without copies.

The wheel also contains the program `savedsearch`, with a shell, servers and `probe`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# DB-API 2.0
apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"
Binary = bytes

if TYPE_CHECKING:
    from .connection import Connection as Connection
    from .connection import Cursor as Cursor
    from .connection import connect as connect
    from .errors import DatabaseError as DatabaseError
    from .errors import DataError as DataError
    from .errors import Error as Error
    from .errors import IncompleteResult as IncompleteResult
    from .errors import IntegrityError as IntegrityError
    from .errors import InterfaceError as InterfaceError
    from .errors import InternalError as InternalError
    from .errors import NotSupportedError as NotSupportedError
    from .errors import OperationalError as OperationalError
    from .errors import Place as Place
    from .errors import ProgrammingError as ProgrammingError
    from .library import driver_path as driver_path
    from .library import write_manifest as write_manifest
    from .query import Query as Query

_HOMES = {
    "connection": ("Connection", "Cursor", "connect"),
    "errors": (
        "DatabaseError",
        "DataError",
        "Error",
        "IncompleteResult",
        "IntegrityError",
        "InterfaceError",
        "InternalError",
        "NotSupportedError",
        "OperationalError",
        "Place",
        "ProgrammingError",
    ),
    "library": ("driver_path", "write_manifest"),
    "query": ("Query",),
}
# Further names of PEP 249, which `help` leaves out: they are classes of Python.
_HOMES_PEP_249 = {
    "adbc_driver_manager.dbapi": (
        "DATETIME",
        "Date",
        "DateFromTicks",
        "NUMBER",
        "ROWID",
        "STRING",
        "Time",
        "TimeFromTicks",
        "Timestamp",
        "TimestampFromTicks",
        "Warning",
    ),
}
_HOME = {name: home for home, names in (_HOMES | _HOMES_PEP_249).items() for name in names}

__all__ = [*sorted(name for names in _HOMES.values() for name in names), "sql", "load_ipython_extension"]

_default: Connection | None = None
_lock = threading.Lock()


def __getattr__(name: str) -> Any:
    """Imports what is used: `import savedsearch` alone takes a few milliseconds."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home if "." in home else f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


def default_connection() -> Connection:
    """The connection of `sql` without one: as the environment says (`SAVEDSEARCH_BASE_URL`, `SAVEDSEARCH_CONFIG`), or to the demo
    data. It is opened once."""
    global _default
    with _lock:
        if _default is None:
            import atexit

            from .connection import connect

            _default = connect()
            atexit.register(_default.close)
        return _default


def sql(statement: str, parameters: Any = None, *, connection: Connection | None = None) -> Query:
    """Plans a statement, without a request. A query runs when its rows are read for the first time; a statement without rows, such
    as `SET` or `CREATE VIEW`, takes effect at once.

    `parameters` replace `?` in the statement: a sequence of values, or Arrow data with a set of values per row.
    """
    if connection is None:
        return default_connection().sql(statement, parameters)
    from .connection import Connection
    from .errors import wrong

    if not isinstance(connection, Connection):
        raise wrong(f"invalid connection of type {type(connection).__name__}", "pass one of savedsearch.connect")
    return connection.sql(statement, parameters)


def load_ipython_extension(ipython: Any) -> None:
    """Adds the cell magic `%%savedsearch`: `%load_ext savedsearch`."""
    from .magic import register

    register(ipython)
