"""Connections: PEP 249 over the driver manager of ADBC."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from os import PathLike
from typing import Any, TypeVar

import adbc_driver_manager
from adbc_driver_manager import dbapi

from .errors import typed
from .library import driver_path
from .query import Query

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
    named = {
        "uri": uri,
        "savedsearch.api_key": api_key,
        "savedsearch.api_key_command": api_key_command,
        "savedsearch.profile": profile,
        "savedsearch.store": store,
        "savedsearch.connection": connection,
        "savedsearch.config": config,
        "savedsearch.max_requests": max_requests,
        "savedsearch.insecure": "true" if insecure else None,
        "savedsearch.now": now.isoformat() if isinstance(now, datetime) else now,
        **{f"savedsearch.{name}": value for name, value in settings.items()},
    }
    options = {name: str(value) for name, value in named.items() if value is not None}
    options["driver"] = str(driver_path())
    try:
        database = adbc_driver_manager.AdbcDatabase(**options)
        try:
            return Connection(database, adbc_driver_manager.AdbcConnection(database), autocommit=True)
        except BaseException:
            database.close()
            raise
    except adbc_driver_manager.Error as error:
        raise typed(error) from None


@contextmanager
def _typed(cursor: Cursor | None = None) -> Iterator[None]:
    try:
        yield
    except adbc_driver_manager.Error as error:
        made = typed(error)
        if made.kind == "cancelled" and cursor is not None and not cursor.cancelled:
            # Nobody but Ctrl-C has cancelled it.
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt from None
        raise made from None


def _with_types(method: _F) -> _F:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _typed(self if isinstance(self, Cursor) else None):
            return method(self, *args, **kwargs)

    return call  # type: ignore[return-value]


class Cursor(dbapi.Cursor):
    """A DB-API cursor. `adbc_…` methods are those of `adbc_driver_manager.dbapi`."""

    cancelled = False
    """True once `adbc_cancel` was called for the running statement."""

    def execute(self, operation: bytes | str, parameters: Any = None) -> Cursor:
        """Runs a statement. It returns when the first rows are there."""
        self.cancelled = False
        with _typed(self):
            super().execute(operation, parameters)
        return self

    def adbc_cancel(self) -> None:
        """Cancels the running statement, which ends its requests. Any thread may call it."""
        self.cancelled = True
        super().adbc_cancel()

    @property
    def requests(self) -> int:
        """Requests that the last statement has sent until now."""
        return self.adbc_statement.get_option_int("savedsearch.requests")

    for _name in (
        "executemany",
        "executescript",
        "fetchone",
        "fetchmany",
        "fetchall",
        "fetchallarrow",
        "fetch_arrow_table",
        "fetch_df",
        "fetch_polars",
        "adbc_execute_schema",
        "adbc_ingest",
        "adbc_prepare",
    ):
        locals()[_name] = _with_types(getattr(dbapi.Cursor, _name))
    del _name


class Connection(dbapi.Connection):
    """A DB-API connection: a session with settings, views and temporary tables of its own. `adbc_…` methods are those of
    `adbc_driver_manager.dbapi`; none of them sends a request."""

    def __del__(self) -> None:
        # At a prompt and in notebooks connections are rarely closed. At the end of the process modules may be gone.
        try:
            if not self._closed:
                self.close()
        except Exception:
            pass

    def cursor(self, *, adbc_stmt_kwargs: Any = None, dbapi_backend: Any = None) -> Cursor:
        """Opens a cursor."""
        with _typed():
            cursor = Cursor(self, adbc_stmt_kwargs, dbapi_backend=dbapi_backend or self._backend)
        self._cursors.add(cursor)
        return cursor

    def sql(self, statement: str, parameters: Any = None) -> Query:
        """Plans a statement, as `savedsearch.sql` does."""
        return Query(self, statement, parameters)

    @property
    def is_demo(self) -> bool:
        """True for the built-in demo data."""
        return self.adbc_connection.get_option("savedsearch.demo") == "true"

    for _name in ("adbc_get_info", "adbc_get_objects", "adbc_get_table_schema", "adbc_get_table_types"):
        locals()[_name] = _with_types(getattr(dbapi.Connection, _name))
    del _name
