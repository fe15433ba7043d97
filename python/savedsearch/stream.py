"""Rows as they arrive, for libraries that read Arrow streams.

Such a reader asks the cursor for each batch. So it shares the cursor with calls of other threads, and Ctrl-C ends the query also
where another library, which does not look for signals, reads it.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow
from adbc_driver_manager import _lib

from .errors import Error, misused

if TYPE_CHECKING:
    from .connection import Cursor

_reading: WeakKeyDictionary[Cursor, threading.Thread] = WeakKeyDictionary()
"""Cursors whose rows are being read, and the threads that read them."""


@atexit.register
def _end() -> None:
    """Ends what daemon threads read: pyarrow aborts a process that ends while such a thread is in a stream of Python."""
    for cursor, thread in list(_reading.items()):
        if thread.daemon and thread.is_alive():
            cursor.close()
            thread.join(1)


class Rows:
    """The rows of a statement, which are read once (Arrow PyCapsule interface). Closing or dropping their reader ends their requests."""

    def __init__(self, reader: pyarrow.RecordBatchReader) -> None:
        self._reader: pyarrow.RecordBatchReader | None = reader
        self._schema = reader.schema

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader, self._reader = self._reader, None
        if reader is None:
            raise misused("the rows were streamed and are gone", "execute the statement again")
        return reader.__arrow_c_stream__(requested_schema)


def through(cursor: Cursor, reader: pyarrow.RecordBatchReader) -> pyarrow.RecordBatchReader:
    """The rows of a reader of the driver, which are those of the last statement of a cursor."""
    return pyarrow.RecordBatchReader.from_batches(reader.schema, _batches(cursor, reader))


def _batches(cursor: Cursor, reader: pyarrow.RecordBatchReader) -> Iterator[pyarrow.RecordBatch]:
    """The batches. Libraries show the traceback of an exception that a function raises here as a part of its message, but none of
    one that is thrown into a generator that has ended."""
    failures: list[BaseException] = []
    ended = (failure for failure in failures)
    list(ended)
    return chain(_until_failure(cursor, reader, cursor._results, failures), map(ended.throw, failures))


def _until_failure(
    cursor: Cursor, reader: pyarrow.RecordBatchReader, results: Any, failures: list[BaseException]
) -> Iterator[pyarrow.RecordBatch]:
    end, cancel = object(), cursor.adbc_statement.cancel

    def read() -> pyarrow.RecordBatch:
        if cursor._results is not results and not cursor._closed:
            raise misused("the rows are gone: the cursor ran another statement", "open a cursor for each statement")
        return _lib._blocking_call(next, (reader, end), {}, cancel)

    _reading[cursor] = threading.current_thread()
    try:
        while (batch := cursor._read(read)) is not end:
            yield batch
    except KeyboardInterrupt:
        failures.append(KeyboardInterrupt(str(cursor._interrupted())))
    except Error as error:
        failures.append(error.with_traceback(None))
    finally:
        _reading.pop(cursor, None)
