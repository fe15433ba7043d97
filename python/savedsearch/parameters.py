"""What callers pass to statements: texts and parameters, checked before the driver receives them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow
from adbc_driver_manager import _lib

from .errors import wrong

_WRONG = (pyarrow.ArrowException, TypeError, ValueError, OverflowError, AttributeError)


def text(name: str, value: Any) -> str:
    """A text that the driver takes. A NUL would end it, since the driver takes C strings."""
    if not isinstance(value, str):
        raise wrong(f"invalid {name}: expected text, got {type(value).__name__}")
    if "\0" in value:
        raise wrong(f"invalid {name}: it contains a NUL character; remove it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong(f"invalid {name}: it is not valid Unicode") from None
    return value


def bindable(parameters: Any) -> pyarrow.Table | pyarrow.RecordBatch | None:
    """Parameters as Arrow data, a set per row; `None` if there are none. A stream is read, so that it can be bound again."""
    if parameters is None or isinstance(parameters, (pyarrow.Table, pyarrow.RecordBatch)):
        return parameters
    try:
        if _lib.is_pycapsule(parameters, b"arrow_array_stream"):
            return pyarrow.RecordBatchReader._import_from_c_capsule(parameters).read_all()
        if isinstance(parameters, pyarrow.RecordBatchReader):
            return parameters.read_all()
        if hasattr(parameters, "__arrow_c_stream__"):
            return pyarrow.table(parameters)
        if hasattr(parameters, "__arrow_c_array__"):
            return pyarrow.record_batch(parameters)
    except _WRONG as error:
        raise wrong(f"invalid parameters: {_line(error)}") from None
    values = _values(parameters)
    return _batch([[value] for value in values]) if values else None


def bindable_sets(sets: Any) -> Any:
    """The parameter sets of `executemany` as Arrow data; `None` and an empty list as they are."""
    if sets is None or any(hasattr(sets, name) for name in ("__arrow_c_stream__", "__arrow_c_array__")):
        return bindable(sets)
    rows = [_values(row) for row in _values(sets)]
    if any(len(row) != len(rows[0]) for row in rows):
        raise wrong("invalid parameters: the sets differ in length")
    return _batch([list(column) for column in zip(*rows, strict=True)]) if rows else []


def _values(parameters: Any) -> list[Any]:
    if isinstance(parameters, (str, bytes, bytearray, dict)) or not isinstance(parameters, Iterable):
        given = type(parameters).__name__
        raise wrong(f"invalid parameters: expected a sequence of values, got {given}; write (value,) for one value")
    return list(parameters)


def _batch(columns: list[list[Any]]) -> pyarrow.RecordBatch:
    arrays = []
    for place, values in enumerate(columns, 1):
        try:
            arrays.append(pyarrow.array(values))
        except _WRONG as error:
            raise wrong(f"invalid parameter {place}: {_line(error)}") from None
    return pyarrow.record_batch(arrays, names=[str(place) for place in range(len(arrays))])


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
