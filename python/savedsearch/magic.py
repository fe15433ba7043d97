"""The cell magic `%%savedsearch`: cost, rows and a chart of a statement.

    %%savedsearch [NAME] [--estimate] [--no-chart] [--max-requests N] [--rows N] [--parameters NAME] [--connection NAME]
    SELECT source, count(*) AS n FROM mentions GROUP BY source
"""

from __future__ import annotations

import argparse
import contextlib
import html
import keyword
from collections.abc import Iterable
from typing import Any

from . import default_connection
from .connection import Connection, _typed
from .errors import Error, in_range, wrong
from .query import Query, with_times

SHOWN = 20
"""Rows that a cell shows by default."""


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise wrong(f"%%savedsearch: {message}", "--help lists the options")


def _variable(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a name of a variable")
    return text


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a number from 0, got {text!r}")
    return int(text)


def _arguments() -> argparse.ArgumentParser:
    parser = _Arguments(prog="%%savedsearch", add_help=False)
    parser.add_argument("name", nargs="?", type=_variable, help="variable that receives the query")
    parser.add_argument("--help", action="store_true", help="show this list")
    parser.add_argument("--estimate", action="store_true", help="show the cost and do not run")
    parser.add_argument("--no-chart", action="store_true", help="do not draw a chart of the rows")
    parser.add_argument("--connection", type=_variable, help="variable with a connection; default: that of savedsearch.sql")
    parser.add_argument("--parameters", type=_variable, help="variable with the values of the statement's `?`")
    parser.add_argument("--max-requests", type=_natural, help="requests that the query may send")
    parser.add_argument("--rows", type=_natural, default=SHOWN, help=f"rows to show; default: {SHOWN}")
    return parser


def register(ipython: Any) -> None:
    """Adds the magic to a running IPython."""

    def savedsearch(line: str, cell: str | None = None) -> Any:
        try:
            of_line = ["--help"] if line.strip() == "--help" else []
            arguments = _arguments().parse_args(line.split() if cell is not None else of_line)
            if arguments.help:
                return print(_arguments().format_help())
            return _run(ipython.user_ns, cell if cell is not None else line, arguments)
        except Error as error:
            # The line alone: its place in this package helps nobody.
            error._render_traceback_ = lambda line=f"{type(error).__name__}: {error}": [line]  # type: ignore[attr-defined]
            raise error.with_traceback(None) from None

    ipython.register_magic_function(savedsearch, magic_kind="line_cell", magic_name="savedsearch")


def _run(names: dict[str, Any], statement: str, arguments: argparse.Namespace) -> Any:
    connection = names.get(arguments.connection) if arguments.connection else default_connection()
    if not isinstance(connection, Connection):
        message = f"%%savedsearch: {arguments.connection} is not a connection"
        raise wrong(message, "name a variable with a connection of savedsearch.connect")
    if arguments.parameters and arguments.parameters not in names:
        raise wrong(f"%%savedsearch: there is no variable {arguments.parameters}", "assign the values to it first")
    parameters = names[arguments.parameters] if arguments.parameters else None
    previous = connection.adbc_connection.get_option("savedsearch.max_requests")
    try:
        if arguments.max_requests is not None:
            with _typed():
                connection.adbc_connection.set_options(**{"savedsearch.max_requests": str(arguments.max_requests)})
        # If the statement fails, the variable must not have the query of an earlier cell.
        names.pop(arguments.name, None)
        query = Query(connection, statement, parameters, only_estimate=arguments.estimate)
        if arguments.name:
            names[arguments.name] = query
        if not query.schema.names and not arguments.estimate:
            return None
        return Shown(query, arguments.rows, chart=not arguments.no_chart, run=not arguments.estimate)
    finally:
        connection.adbc_connection.set_options(**{"savedsearch.max_requests": previous})


class Shown:
    """What a cell displays."""

    def __init__(self, query: Query, rows: int, *, chart: bool, run: bool) -> None:
        self.estimate = query.estimate()
        self.query = query
        table = query.arrow().slice(0, rows) if run else None
        self.names = query.schema.names if run else []
        with in_range():
            columns = [column.to_pylist() for column in with_times(table).columns] if table is not None else []
        self.rows = list(zip(*columns, strict=True))
        self.line = f"estimated requests: {self.estimate}"
        if run:
            count = query.arrow().num_rows
            unseen = count - rows
            hidden = f" · {unseen} row{'s' if unseen > 1 else ''} hidden" if unseen > 0 else ""
            self.line += f" · sent: {query.requests} · rows: {count}{hidden}"
        self.picture = None
        if run and chart:
            # Not all rows can be drawn, such as texts alone.
            with contextlib.suppress(Error):
                self.picture = query.svg()
        self.line = " · ".join([self.line, *query.notes])

    def __repr__(self) -> str:
        lines = [
            " | ".join(self.names),
            *(" | ".join("NULL" if v is None else str(v) for v in row) for row in self.rows),
        ]
        return "\n".join([*lines, self.line] if self.names else [self.line])

    def _repr_html_(self) -> str:
        body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in self.rows)
        table = (
            f"<table><thead><tr>{_cells('th', self.names)}</tr></thead><tbody>{body}</tbody></table>" if self.names else ""
        )
        return f"{self.picture or ''}{table}<p>{html.escape(self.line)}</p>"


def _cells(kind: str, values: Iterable[Any]) -> str:
    shown = ("NULL" if value is None else html.escape(str(value)) for value in values)
    return "".join(f"<{kind}>{value}</{kind}>" for value in shown)
