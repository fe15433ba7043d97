"""Connections: PEP 249 over the driver manager of ADBC."""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import adbc_driver_manager
import pyarrow
from adbc_driver_manager import dbapi

from .errors import Error, in_range, misused, of_status, require, typed, uncopied, warn, wrong
from .library import driver_path
from .parameters import bindable, bindable_sets, text
from .query import Query, to_polars
from .stream import Rows, through

if TYPE_CHECKING:
    import pandas
    import polars

_T = TypeVar("_T")
_F = TypeVar("_F", bound=Callable[..., Any])


def connect(
    uri: str | None = None,
    *,
    api_key: str | None = None,
    api_key_command: str | None = None,
    profile: str | PathLike[str] | None = None,
    store: str | PathLike[str] | None = None,
    connection: str | None = None,
    config: str | PathLike[str] | None = None,
    max_requests: int | None = None,
    insecure: bool = False,
    now: str | datetime | None = None,
    **settings: str | int,
) -> Connection:
    """Connects to a service, without a request. Connections with the same address and key share their rate limit.

    Args:
        uri: Base URL, ending in /v4. Default: `SAVEDSEARCH_BASE_URL`, then the configuration file, then the demo data.
        api_key: The key. Default: `SAVEDSEARCH_API_KEY`.
        api_key_command: A command that prints the key, such as that of a password manager.
        profile: File with the profile of the service, or the name of a built-in one: v4, flags, pages or names.
        store: Folder that keeps the mentions that were read.
        connection: Name of a connection of the configuration file.
        config: Configuration file. Default: `SAVEDSEARCH_CONFIG`, or `savedsearch/savedsearch.toml` in the user's configuration folder.
        max_requests: Requests that one query may send. A query that needs more is refused. Default: 1,000.
        insecure: Allow http addresses beyond this machine, which show the key to the network.
        now: Instant at which the clock of the demo data stands still, for the same rows every day.
        settings: Further session settings, as `SET savedsearch.…` takes them, such as `timezone="Europe/Berlin"`.

    Raises:
        ProgrammingError: A wrong option, key, profile or configuration file.
    """
    for name, given in (("uri", uri), ("api_key", api_key), ("api_key_command", api_key_command), ("connection", connection)):
        if given is not None:
            text(name, given)
    if now is not None and not isinstance(now, (str, datetime)):
        raise wrong(f"invalid now of type {type(now).__name__}", "expected text or a datetime")
    named = {
        "uri": uri,
        "savedsearch.api_key": api_key,
        "savedsearch.api_key_command": api_key_command,
        "savedsearch.profile": _path("profile", profile),
        "savedsearch.store": _path("store", store),
        "savedsearch.connection": connection,
        "savedsearch.config": _path("config", config),
        "savedsearch.max_requests": max_requests,
        "savedsearch.insecure": _flag("insecure", insecure),
        "savedsearch.now": now.isoformat() if isinstance(now, datetime) else now,
        **{f"savedsearch.{name}": value for name, value in settings.items()},
    }
    options = {name: _option(name, value) for name, value in named.items() if value is not None}
    options["driver"] = str(driver_path())
    try:
        database = adbc_driver_manager.AdbcDatabase(**options)
        try:
            return Connection(database, adbc_driver_manager.AdbcConnection(database), autocommit=True)
        except BaseException:
            database.close()
            raise
    except adbc_driver_manager.Error as error:
        raise typed(error, of_connect=True) from None


def _flag(name: str, value: Any) -> str | None:
    """A switch that loosens a rule: text such as "false" must not turn it on."""
    if not isinstance(value, bool):
        raise wrong(f"invalid {name}: {value!r}", "expected True or False")
    return "true" if value else None


def _path(name: str, value: str | PathLike[str] | None) -> str | None:
    """A path with the home folder in the place of `~`, as a shell would pass it."""
    if value is None:
        return None
    if not isinstance(value, (str, PathLike)):
        raise wrong(f"invalid {name} of type {type(value).__name__}", "expected a path")
    path = os.fspath(value)
    if not path:
        raise wrong(f"invalid {name}: the path is empty", "leave it out to use none")
    return os.path.expanduser(path)


def _option(name: str, value: Any) -> str:
    if isinstance(value, (bytes, bytearray)):
        raise wrong(f"invalid {name} of type {type(value).__name__}", "expected text")
    return text(name, str(value).lower() if isinstance(value, bool) else str(value))


@contextmanager
def _typed(cursor: Cursor | None = None) -> Iterator[None]:
    try:
        yield
    except adbc_driver_manager.Error as error:
        made = typed(error)
        if cursor is not None and made.kind == "cancelled":
            cursor._failed = copy(made)
            if cursor._was_interrupted(made):
                raise KeyboardInterrupt from None
        raise made from None
    except KeyboardInterrupt:
        if cursor is not None:
            cursor._interrupted()
        raise


def _with_types(method: _F) -> _F:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, Cursor):
            with _typed():
                return method(self, *args, **kwargs)
        with self._use(), _typed(self):
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]


def _fetching(method: _F) -> _F:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._failed is None:
            self._check_open()
        return self._read(lambda: method(self, *args, **kwargs))

    return call  # type: ignore[return-value]


def _others(base: type, own: dict[str, Any]) -> dict[str, Any]:
    """The methods of a class of the driver manager that are not `own`, with the exceptions of this package."""
    return {
        name: _fetching(method) if name.startswith(("fetch", "__next__")) else _with_types(method)
        for name, method in inspect.getmembers(base, inspect.isfunction)
        if name not in own and (name == "__next__" or not name.startswith("_"))
    }


class Cursor(dbapi.Cursor):
    """A DB-API cursor. `adbc_…` methods are those of `adbc_driver_manager.dbapi`.

    One thread at a time executes and fetches; a call during one of another thread is an `InterfaceError`. Any thread may call `close`
    and `adbc_cancel`.
    """

    _conn: Connection
    cancelled = False
    """True once the running statement was cancelled by a call of `adbc_cancel` or `close`."""
    _failed: Error | None = None
    """Failure that the rows ended with, or that they were cancelled. Every further fetch raises it again."""
    _warned: frozenset[str] = frozenset()
    _ending = False
    """True from the start of `close`."""
    _executing = False
    """True while a call runs a statement, also before the driver has begun it."""
    _reading = False
    _ended = False
    """True once `close` has kept the account of the statement."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._used = threading.RLock()
        self._process = os.getpid()
        self._kept = {"requests": "0", "notes": ""}
        super().__init__(*args, **kwargs)
        self._number = self._stmt.get_option_int("savedsearch.statement")

    @contextmanager
    def _use(self) -> Iterator[None]:
        """The calls of one thread. Those of two threads at the same time would lose rows."""
        if self._is_forked():
            raise misused("the cursor was opened before this process was forked", "start processes with the method `spawn`")
        if not self._used.acquire(blocking=False):
            raise misused("another thread is using the cursor", "open a cursor for each thread")
        try:
            yield
        finally:
            self._used.release()

    def execute(self, operation: bytes | str, parameters: Any = None) -> Cursor:
        """Runs a statement. It returns when the first rows are there."""
        run = super().execute
        self._execute(lambda: run(operation, parameters))
        return self

    def executemany(self, operation: bytes | str, seq_of_parameters: Any) -> None:
        """Runs a statement without rows once for each set of parameters."""
        run = super().executemany
        self._execute(lambda: run(_statement(operation), bindable_sets(seq_of_parameters)))

    def executescript(self, operation: str) -> None:
        """Runs a statement without rows."""
        run = super().executescript
        self._execute(lambda: run(text("statement", operation)))

    def _check_open(self) -> None:
        what = "connection" if self._conn._ending else "cursor"
        if self._closed or self._ending or self._conn._ending:
            raise misused(f"the {what} is closed", f"open another {what}")

    def _is_forked(self) -> bool:
        """True in a process that was forked after the cursor was opened: threads, for which its calls wait, do not survive that."""
        return os.getpid() != self._process

    def _execute(self, run: Callable[[], Any]) -> None:
        """Runs a statement."""
        with self._use(), _typed(self):
            with self._conn._cancelling:
                self._check_open()
                self.cancelled, self._failed, self._warned = False, None, frozenset()
                self._executing = True
            try:
                run()
            finally:
                self._executing = False
            if self._failed is not None:
                # It was cancelled before the driver had begun it.
                raise self._interrupted()
            self._warn()

    def _prepare_execute(self, operation: bytes | str, parameters: Any = None) -> None:
        super()._prepare_execute(_statement(operation), bindable(parameters))

    def adbc_cancel(self) -> None:
        """Cancels the statement, which ends its requests. Any thread may call it. Fetches raise an exception of the kind `cancelled`
        until the next `execute`, also if rows have arrived."""
        with self._conn._cancelling, _typed():
            self._check_open()
            self._mark_cancelled()
            super().adbc_cancel()

    def _mark_cancelled(self) -> None:
        self.cancelled = True
        if self._failed is None:
            self._failed = _as_error(_CANCELLED)

    def close(self) -> None:
        """Ends the statement and its requests, also while another library reads its rows."""
        if self._closed:
            return
        with self._conn._cancelling:
            self._ending = self.cancelled = True
        with suppress(adbc_driver_manager.Error):
            self._stmt.cancel()
        # A call of another thread must have ended. It may have begun after the statement was cancelled.
        while not self._used.acquire(timeout=0.05):
            if self._is_forked():
                return
            with suppress(adbc_driver_manager.Error):
                self._stmt.cancel()
        try:
            with suppress(adbc_driver_manager.Error):
                self._kept = {part: self._account(part) for part in self._kept}
            self._ended = True
            super().close()
        finally:
            self._used.release()

    __reduce_ex__ = uncopied

    def __del__(self) -> None:
        # Rows that another library still reads go on.
        if not self._closed:
            super().close()

    @property
    def requests(self) -> int:
        """Requests that the last statement has sent until now. Any thread may read it while the statement runs."""
        return int(self._account("requests"))

    @property
    def notes(self) -> list[str]:
        """Lines about what the last statement reads, such as the window of a query without a time filter."""
        notes = self._account("notes")
        return notes.split("\n") if notes else []

    def _account(self, part: str) -> str:
        """A part of the account of the statement. Its connection has it too, which answers while the statement runs."""
        try:
            if not self._ended:
                return self._conn.adbc_connection.get_option(f"savedsearch.statement.{self._number}.{part}")
        except adbc_driver_manager.Error as error:
            # Another thread may have closed the cursor meanwhile.
            if not self._ended:
                raise typed(error) from None
        return self._kept[part]

    def _read(self, read: Callable[[], _T]) -> _T:
        """Reads rows. A failure in the middle of them has lost its parts, which the statement has."""
        with self._use():
            return self._read_rows(read)

    def _read_rows(self, read: Callable[[], _T]) -> _T:
        if self._failed is not None:
            raise copy(self._failed)
        try:
            self._reading = True
            with in_range():
                rows = read()
            self._reading = False
            self._warn()
        except (pyarrow.ArrowException, OSError, adbc_driver_manager.Error) as error:
            self._failed = made = self._failure() or self._failed
            self._reading = False
            if made is None:
                raise typed(error) if isinstance(error, adbc_driver_manager.Error) else error from None
            if self._was_interrupted(made):
                raise KeyboardInterrupt from None
            raise copy(made) from None
        except KeyboardInterrupt:
            # Between two calls of the driver, which would otherwise go on.
            self._interrupted()
            raise
        return rows

    def _interrupted(self) -> Error:
        """Ends the statement. Returns the exception that further fetches raise."""
        with suppress(adbc_driver_manager.Error):
            self._stmt.cancel()
        self._failed, self._reading = _as_error(_CANCELLED), False
        return copy(self._failed)

    def _was_interrupted(self, error: Error) -> bool:
        # Nobody but Ctrl-C has cancelled it.
        of_main = threading.current_thread() is threading.main_thread()
        return error.kind == "cancelled" and not self.cancelled and of_main

    def _failure(self) -> Error | None:
        """The failure that the rows ended with; `None` if there is none."""
        names = ("message", "status", "sqlstate", "kind", "advice", "table", "aid", "row", "line", "column")
        parts = {}
        for name in names if not self._closed else ():
            with suppress(adbc_driver_manager.Error):
                parts[name] = self._stmt.get_option(f"savedsearch.error.{name}")
        if self._closed and self._reading:
            parts = _CANCELLED
            if getattr(self._conn, "_ending", False):
                parts = parts | {"message": f"{parts['message']}: the connection is closed"}
        return _as_error(parts) if parts else None

    def _warn(self) -> None:
        """Warns of rows that are missing, of each reason once."""
        lines = [] if self._closed else self._stmt.get_option("savedsearch.warnings").split("\n")
        for line in lines:
            if line and line not in self._warned:
                self._warned |= {line}
                warn(line)

    def fetch_polars(self) -> polars.DataFrame:
        """Fetches all rows as a polars data frame."""
        return to_polars(self.fetch_arrow_table())

    @_fetching
    def fetch_arrow(self) -> Rows:  # type: ignore[override]
        """Fetches the rows once, as an object that libraries read as an Arrow stream (PyCapsule interface)."""
        return Rows(through(self, self._stream()))

    def _stream(self) -> pyarrow.RecordBatchReader:
        """The driver's reader, which no signal and no other thread can end."""
        return pyarrow.RecordBatchReader.from_stream(super().fetch_arrow())

    @_fetching
    def fetch_record_batch(self) -> pyarrow.RecordBatchReader:
        """Fetches the rows as an Arrow stream. Closing the cursor ends its requests."""
        return through(self, super().fetch_record_batch())

    @_fetching
    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """Fetches up to `size` rows; default: `arraysize`."""
        size = self.arraysize if size is None else size
        if not isinstance(size, int) or size < 0:
            raise wrong(f"invalid number of rows: {size!r}", "expected a number from 0")
        return super().fetchmany(size)

    @_fetching
    def fetch_df(self) -> pandas.DataFrame:
        """Fetches all rows as a pandas data frame."""
        require("pandas")
        return super().fetch_df()

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        """The columns; `None` for a statement without rows."""
        with _typed():
            return super().description or None

    locals().update(_others(dbapi.Cursor, locals()))


_CANCELLED = {
    "message": "the query was cancelled",
    "status": str(int(adbc_driver_manager.AdbcStatusCode.CANCELLED)),
    "sqlstate": "57014",
    "kind": "cancelled",
}


def _as_error(parts: dict[str, str]) -> Error:
    status = adbc_driver_manager.AdbcStatusCode(int(parts["status"]))
    return typed(of_status(status, parts["message"], parts.get("sqlstate")), parts.items())


def _statement(operation: bytes | str) -> bytes | str:
    return operation if isinstance(operation, bytes) else text("statement", operation)


_CATALOG = adbc_driver_manager.ConnectionOptions.CURRENT_CATALOG.value
_SCHEMA = adbc_driver_manager.ConnectionOptions.CURRENT_DB_SCHEMA.value


class Connection(dbapi.Connection):
    """A DB-API connection: a session with settings, views and temporary tables of its own. `adbc_…` methods are those of
    `adbc_driver_manager.dbapi`; none of them sends a request."""

    _ending = False
    """True from the start of `close`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # Held while statements are cancelled, so that none of them begins, and no cursor is opened, between the mark and the call.
        self._cancelling = threading.RLock()
        super().__init__(*args, **kwargs)

    __reduce_ex__ = uncopied

    def __del__(self) -> None:
        # At a prompt and in notebooks connections are rarely closed. At the end of the process modules may be gone.
        # Rows that another library still reads go on.
        try:
            if not self._closed:
                super().close()
        except Exception:
            pass

    def close(self) -> None:
        """Ends all statements and their requests, also while another library reads their rows."""
        with self._cancelling:
            if self._closed or self._ending:
                return
            self._ending = True
            self._cancel()
        super().close()

    def adbc_cancel(self) -> None:
        """Cancels all statements that run or have rows. Any thread may call it."""
        with self._cancelling:
            self._check_open()
            cursors: list[Any] = list(self._cursors)
            for cursor in cursors:
                if cursor._executing or cursor._results is not None:
                    cursor._mark_cancelled()
            self._cancel()

    def _cancel(self) -> None:
        cursors: list[Any] = list(self._cursors)
        for cursor in cursors:
            cursor.cancelled = True
        with _typed():
            self._conn.cancel()

    def _check_open(self) -> None:
        if self._closed or self._ending:
            raise misused("the connection is closed", "open another connection")

    def cursor(self, *, adbc_stmt_kwargs: Any = None, dbapi_backend: Any = None) -> Cursor:
        """Opens a cursor."""
        with self._cancelling, _typed():
            self._check_open()
            cursor = Cursor(self, adbc_stmt_kwargs, dbapi_backend=dbapi_backend or self._backend)
            self._cursors.add(cursor)
        return cursor

    def sql(self, statement: str, parameters: Any = None) -> Query:
        """Plans a statement, as `savedsearch.sql` does."""
        return Query(self, statement, parameters)

    @property
    def adbc_current_catalog(self) -> str:
        """Catalog of names without one."""
        return self._get(_CATALOG)

    @adbc_current_catalog.setter
    def adbc_current_catalog(self, catalog: str) -> None:
        self._set(_CATALOG, text("catalog", catalog))

    @property
    def adbc_current_db_schema(self) -> str:
        """Schema of names without one."""
        return self._get(_SCHEMA)

    @adbc_current_db_schema.setter
    def adbc_current_db_schema(self, db_schema: str) -> None:
        self._set(_SCHEMA, text("schema", db_schema))

    def _get(self, name: str) -> str:
        self._check_open()
        with _typed():
            return self._conn.get_option(name)

    def _set(self, name: str, value: str) -> None:
        self._check_open()
        with _typed():
            self._conn.set_options(**{name: value})

    @property
    def is_demo(self) -> bool:
        """True for the built-in demo data."""
        return self._get("savedsearch.demo") == "true"

    def adbc_clone(self) -> Connection:
        """Opens a further connection with the same options, and settings, views and temporary tables of its own."""
        self._check_open()
        with _typed():
            return Connection(self._db, adbc_driver_manager.AdbcConnection(self._db._db), autocommit=True)

    locals().update(_others(dbapi.Connection, locals()))
