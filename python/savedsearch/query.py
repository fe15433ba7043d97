"""Queries: planned at once, run when their rows are read, and read once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import adbc_driver_manager
import pyarrow
from adbc_driver_manager import _lib

from .errors import InterfaceError, typed

if TYPE_CHECKING:
    import pandas
    import polars

    from .connection import Connection, Cursor

_T = TypeVar("_T")


class IncompleteResult(UserWarning):
    """Rows are missing, which `SET savedsearch.completeness = 'report'` allows."""


class Query:
    """A statement and its rows.

    `arrow`, `pl`, `df`, `rows` and `svg` keep the rows, so that the next of them sends no request. Libraries that read Arrow streams
    (`duckdb.sql("FROM query")`, `polars.DataFrame(query)`, `pyarrow.table(query)`) take the query itself. They stream rows that are
    not kept, once.
    """

    def __init__(self, connection: Connection, statement: str, parameters: Any = None) -> None:
        self.statement = statement
        """The text."""
        self._connection = connection
        self._parameters = parameters
        self._cursor: Cursor = connection.cursor()
        self._table: pyarrow.Table | None = None
        self._streamed = False
        self._ran = False
        try:
            self.schema: pyarrow.Schema = self._cursor.adbc_execute_schema(statement)
        except BaseException:
            self.close()
            raise
        """Columns of the result; none for a statement without one, which has taken effect."""
        if not self.schema.names:
            self.arrow()

    def estimate(self) -> str:
        """Requests that the query needs, in words, such as `1` or `at least 2`. Sends no request."""
        return str(self.costs().column("requests")[-1])

    def costs(self) -> pyarrow.Table:
        """Estimated cost: a row per scan with `table`, `sent`, `requests` in words and `at_least`, and a last one for all."""
        with self._connection.cursor(adbc_stmt_kwargs={"savedsearch.estimate": "true"}) as cursor:
            return cursor.execute(self.statement, self._parameters).fetch_arrow_table()

    @property
    def requests(self) -> int:
        """Requests that it has sent until now."""
        return self._cursor.requests if self._ran and not self._cursor._closed else 0

    def arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table."""
        if self._table is None:
            reader = self._run()
            self._table = self._call(reader.read_all)
            self._warn()
        return self._table

    def pl(self) -> polars.DataFrame:
        """All rows as a polars data frame."""
        import polars

        frame = polars.from_arrow(self.arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def df(self) -> pandas.DataFrame:
        """All rows as a pandas data frame."""
        return self.arrow().to_pandas()

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        return list(zip(*(column.to_pylist() for column in self.arrow().columns), strict=True))

    def svg(self, title: str | None = None) -> str:
        """A chart of the rows as SVG, as `savedsearch sql --format svg` draws it: of a time or category, and numbers."""
        table = self.arrow()
        with self._connection.cursor(adbc_stmt_kwargs={"savedsearch.chart": "true"}) as cursor:
            options = {} if title is None else {"savedsearch.chart_title": title}
            cursor.adbc_statement.set_options(**options)
            row = cursor.execute("SELECT 'chart'", table).fetchone()
            return str(row[0] if row else "")

    def cancel(self) -> None:
        """Ends the query and its requests. Any thread may call it."""
        self._cursor.adbc_cancel()

    def close(self) -> None:
        """Ends the query if it still runs. Rows that were kept stay."""
        self._cursor.close()

    def __del__(self) -> None:
        if hasattr(self, "_cursor"):
            self._cursor.close()

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream (Arrow PyCapsule interface)."""
        if self._table is not None:
            return self._table.__arrow_c_stream__(requested_schema)
        return self._run().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        state = f"{self.requests} requests" if self._ran else "not run yet"
        return f"<savedsearch.Query {' '.join(self.statement.split())!r}: {state}>"

    def _run(self) -> pyarrow.RecordBatchReader:
        if self._streamed:
            raise InterfaceError(
                "the rows were streamed and are gone; call arrow() before to keep them, or sql() again",
                status_code=adbc_driver_manager.AdbcStatusCode.INVALID_STATE,
            )
        self._cursor.execute(self.statement, self._parameters)
        self._ran = self._streamed = True
        return pyarrow.RecordBatchReader.from_stream(self._cursor.fetch_arrow())

    def _call(self, read: Callable[[], _T]) -> _T:
        """Reads, so that Ctrl-C cancels the query. Failures in the middle of a stream have lost their parts, which the statement has."""
        interrupted = False

        def cancel() -> None:
            nonlocal interrupted
            interrupted = True
            self._cursor.adbc_statement.cancel()

        try:
            return _lib._blocking_call(read, (), {}, cancel)
        except (pyarrow.ArrowException, OSError, adbc_driver_manager.Error) as error:
            if interrupted:
                raise KeyboardInterrupt from None
            raise self._failure(error) from None

    def _failure(self, error: BaseException) -> BaseException:
        names = ("message", "sqlstate", "kind", "advice", "table", "aid", "row", "line", "column")
        parts = {}
        for name in names:
            try:
                parts[name] = self._cursor.adbc_statement.get_option(f"savedsearch.error.{name}")
            except adbc_driver_manager.Error:
                continue
        if not parts:
            return error
        status = adbc_driver_manager.AdbcStatusCode.IO
        plain = adbc_driver_manager.OperationalError(
            parts["message"], status_code=status, sqlstate=parts.get("sqlstate")
        )
        return typed(plain, parts.items())

    def _warn(self) -> None:
        text = self._cursor.adbc_statement.get_option("savedsearch.warnings")
        for line in filter(None, text.split("\n")):
            warnings.warn(f"incomplete result: {line}", IncompleteResult, stacklevel=3)
