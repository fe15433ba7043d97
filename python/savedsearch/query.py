"""Queries: planned at once, run when their rows are read, and read once."""

from __future__ import annotations

import re
import threading
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any

import pyarrow
from adbc_driver_manager import _lib

from .errors import Error, in_range, misused, require, uncopied
from .parameters import bindable, text
from .stream import through

if TYPE_CHECKING:
    import pandas
    import polars

    from .connection import Connection, Cursor


class Query:
    """A statement and its rows.

    `arrow`, `pl`, `df`, `rows` and `svg` keep the rows, so that the next of them sends no request. Libraries that read Arrow streams
    (`duckdb.sql("FROM query")`, `polars.DataFrame(query)`, `pyarrow.table(query)`) take the query itself. They stream rows that are
    not kept, once.
    """

    def __init__(
        self, connection: Connection, statement: str, parameters: Any = None, *, only_estimate: bool = False
    ) -> None:
        self.statement = text("statement", statement)
        """The text."""
        self._connection = connection
        self._parameters = bindable(parameters)
        self._cursor: Cursor = connection.cursor()
        self._table: pyarrow.Table | None = None
        self._streamed = False
        self._ran = False
        self._keeping = threading.RLock()
        try:
            self.schema: pyarrow.Schema = self._cursor.adbc_execute_schema(statement, self._parameters)
        except BaseException:
            self.close()
            raise
        """Columns of the result; none for a statement without one, which has taken effect."""
        if not self.schema.names and not only_estimate:
            self.arrow()

    def estimate(self) -> str:
        """Requests that the query needs with all its parameter sets, in words, such as `1` or `at least 2`. Sends no request."""
        return str(self.costs().column("requests")[-1])

    def costs(self) -> pyarrow.Table:
        """Estimated cost: a row per scan with `table`, `sent`, `requests` in words and `at_least`, and a last one for all."""
        with self._estimated() as cursor:
            return cursor.fetch_arrow_table()

    def _estimated(self) -> Cursor:
        cursor = self._connection.cursor(adbc_stmt_kwargs={"savedsearch.estimate": "true"})
        return cursor.execute(self.statement, self._parameters)

    @property
    def requests(self) -> int:
        """Requests that it has sent until now."""
        return self._cursor.requests

    @property
    def notes(self) -> list[str]:
        """Lines about what it reads, such as the window of a query without a time filter. Sends no request."""
        if self._ran or self._cursor._executing or self._cursor._closed:
            return self._cursor.notes
        with self._estimated() as cursor:
            return cursor.notes

    def arrow(self) -> pyarrow.Table:
        """All rows as an Arrow table. Threads that ask at the same time get the same one."""
        with self._keeping:
            if self._table is None:
                reader, cursor = self._run(), self._cursor
                cancel = cursor.adbc_statement.cancel
                self._table = cursor._read(lambda: _lib._blocking_call(reader.read_all, (), {}, cancel))
            return self._table

    def pl(self) -> polars.DataFrame:
        """All rows as a polars data frame."""
        return to_polars(self.arrow())

    def df(self) -> pandas.DataFrame:
        """All rows as a pandas data frame."""
        require("pandas")
        frame: pandas.DataFrame = with_times(self.arrow()).to_pandas()
        return frame

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as tuples."""
        columns = with_times(self.arrow()).columns
        with in_range():
            return list(zip(*(column.to_pylist() for column in columns), strict=True))

    def svg(self, title: str | None = None) -> str:
        """A chart of the rows as SVG, as `savedsearch sql --format svg` draws it: of a time or category, and numbers."""
        table = self.arrow()
        with self._connection.cursor(adbc_stmt_kwargs={"savedsearch.chart": "true"}) as cursor:
            options = {} if title is None else {"savedsearch.chart_title": title}
            cursor.adbc_statement.set_options(**options)
            row = cursor.execute("SELECT 'chart'", table).fetchone()
            return str(row[0] if row else "")

    def cancel(self) -> None:
        """Ends the query and its requests. Any thread may call it. Rows that were not kept raise an exception of the kind `cancelled`."""
        self._cursor.adbc_cancel()

    def close(self) -> None:
        """Ends the query if it still runs. Rows that were kept stay."""
        self._cursor.close()

    __reduce_ex__ = uncopied

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows as an Arrow stream (Arrow PyCapsule interface)."""
        if self._table is not None:
            return self._table.__arrow_c_stream__(requested_schema)
        return through(self._cursor, self._run()).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        state = [f"{self.requests} requests" if self._ran else "not run yet"]
        # A statement that no longer fits the tables of its session has no notes.
        with suppress(Error):
            state += self.notes
        return f"<savedsearch.Query {' '.join(self.statement.split())!r}: {'; '.join(state)}>"

    def _run(self) -> pyarrow.RecordBatchReader:
        failed = self._cursor._failed or (self._cursor._failure() if self._streamed else None)
        if failed is not None:
            raise copy(failed)
        if self._streamed:
            message = "the rows were streamed and are gone"
            raise misused(message, "call arrow() before to keep them, or sql() again")
        self._cursor.execute(self.statement, self._parameters)
        self._ran = self._streamed = True
        return self._cursor._read(self._cursor._stream)


def to_polars(table: pyarrow.Table) -> polars.DataFrame:
    """The table as a polars data frame."""
    require("polars")
    import polars

    for place, field in enumerate(table.schema):
        kind = _with_named_zones(field.type)
        if kind != field.type:
            table = table.set_column(place, field.with_type(kind), table.column(place).cast(kind))
    frame = polars.from_arrow(table)
    assert isinstance(frame, polars.DataFrame)
    return frame


def _with_named_zones(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type with names in the place of zones that are offsets, which polars does not take. The instants stay."""
    if pyarrow.types.is_timestamp(kind) and kind.tz and (found := _OFFSET.fullmatch(kind.tz)):
        sign, hours, minutes = found.groups()
        # The names have the opposite sign, and reach from UTC-12 to UTC+14.
        whole = minutes == "00" and 0 < int(hours) <= (14 if sign == "+" else 12)
        return pyarrow.timestamp(kind.unit, f"Etc/GMT{'-' if sign == '+' else '+'}{int(hours)}" if whole else "UTC")
    if pyarrow.types.is_list(kind):
        return pyarrow.list_(kind.value_field.with_type(_with_named_zones(kind.value_type)))
    if pyarrow.types.is_struct(kind):
        return pyarrow.struct([field.with_type(_with_named_zones(field.type)) for field in kind])
    return kind


_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


def with_times(table: pyarrow.Table) -> pyarrow.Table:
    """The table with times of day in microseconds, as Python has them."""
    for place, field in enumerate(table.schema):
        if field.type == pyarrow.time64("ns"):
            times = table.column(place).cast(pyarrow.time64("us"), safe=False)
            table = table.set_column(place, field.name, times)
    return table
