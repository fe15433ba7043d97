"""The cell magic `%%savedsearch`: cost, rows and a chart of a statement.

    %%savedsearch [NAME] [--estimate] [--chart] [--max-requests N] [--rows N]
    SELECT source, count(*) AS n FROM mentions GROUP BY source
"""

from __future__ import annotations

import argparse
import html
from collections.abc import Iterable
from typing import Any

from . import default_connection
from .connection import Connection
from .errors import Error
from .query import Query

SHOWN = 20
"""Rows that a cell shows by default."""


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise ValueError(f"%%savedsearch: {message}")


def _arguments() -> argparse.ArgumentParser:
    parser = _Arguments(prog="%%savedsearch", add_help=False)
    parser.add_argument("name", nargs="?", help="variable that receives the query")
    parser.add_argument("--estimate", action="store_true", help="show the cost and do not run")
    parser.add_argument("--chart", action="store_true", help="draw a chart of the rows")
    parser.add_argument("--connection", help="variable with a connection; default: that of savedsearch.sql")
    parser.add_argument("--max-requests", type=int, help="requests that the query may send")
    parser.add_argument("--rows", type=int, default=SHOWN, help="rows to show")
    return parser


def register(ipython: Any) -> None:
    """Adds the magic to a running IPython."""

    def savedsearch(line: str, cell: str | None = None) -> Any:
        arguments = _arguments().parse_args(line.split() if cell is not None else [])
        named = ipython.user_ns.get(arguments.connection) if arguments.connection else None
        if arguments.connection and not isinstance(named, Connection):
            raise ValueError(f"%%savedsearch: {arguments.connection} is not a connection")
        return _run(ipython, named or default_connection(), cell if cell is not None else line, arguments)

    ipython.register_magic_function(savedsearch, magic_kind="line_cell", magic_name="savedsearch")


def _run(ipython: Any, connection: Connection, statement: str, arguments: argparse.Namespace) -> Any:
    previous = connection.adbc_connection.get_option("savedsearch.max_requests")
    if arguments.max_requests is not None:
        connection.adbc_connection.set_options(**{"savedsearch.max_requests": str(arguments.max_requests)})
    try:
        query = Query(connection, statement, only_estimate=arguments.estimate)
        if arguments.name:
            ipython.user_ns[arguments.name] = query
        if not query.schema.names and not arguments.estimate:
            return None
        shown = Shown(query, arguments.rows, arguments.chart, run=not arguments.estimate)
    except Error as error:
        raise error.with_traceback(None) from None
    finally:
        connection.adbc_connection.set_options(**{"savedsearch.max_requests": previous})
    return shown


class Shown:
    """What a cell displays."""

    def __init__(self, query: Query, rows: int, chart: bool, *, run: bool) -> None:
        self.estimate = query.estimate()
        self.query = query
        table = query.arrow().slice(0, rows) if run else None
        self.names = query.schema.names
        self.rows = (
            list(zip(*(column.to_pylist() for column in table.columns), strict=True)) if table is not None else []
        )
        self.picture = query.svg() if run and chart else None
        self.line = f"estimated requests: {self.estimate}"
        if run:
            count = query.arrow().num_rows
            hidden = f" · {count - rows} rows hidden" if count > rows else ""
            self.line += f" · sent: {query.requests} · rows: {count}{hidden}"

    def __repr__(self) -> str:
        lines = [
            " | ".join(self.names),
            *(" | ".join("NULL" if v is None else str(v) for v in row) for row in self.rows),
        ]
        return "\n".join([*lines, self.line] if self.rows else [self.line])

    def _repr_html_(self) -> str:
        body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in self.rows)
        table = (
            f"<table><thead><tr>{_cells('th', self.names)}</tr></thead><tbody>{body}</tbody></table>" if body else ""
        )
        return f"{self.picture or ''}{table}<p>{html.escape(self.line)}</p>"


def _cells(kind: str, values: Iterable[Any]) -> str:
    shown = ("NULL" if value is None else html.escape(str(value)) for value in values)
    return "".join(f"<{kind}>{value}</{kind}>" for value in shown)
