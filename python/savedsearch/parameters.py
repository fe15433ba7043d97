"""What callers pass to statements: texts and parameters, checked before the driver receives them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pyarrow
from adbc_driver_manager import _lib

from .errors import wrong

_WRONG = (pyarrow.ArrowException, TypeError, ValueError, OverflowError, AttributeError)
_VALUES = "pass text, numbers, booleans, dates, times, bytes, None, or lists of them"
_SETS = "pass a sequence of values, or an Arrow table with a row for each set, such as pyarrow.table({'aid': [...]})"


class _Unfit(Exception):
    """A value that has no counterpart in SQL."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


def text(name: str, value: Any) -> str:
    """A text that the driver takes. A NUL would end it, since the driver takes C strings."""
    if not isinstance(value, str):
        raise wrong(f"invalid {name} of type {type(value).__name__}", "expected text")
    if "\0" in value:
        raise wrong(f"invalid {name}: it contains a NUL character", "remove it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong(f"invalid {name}: it is not valid Unicode", "remove unpaired surrogates") from None
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
        raise wrong(f"invalid parameters: {_line(error)}", _SETS) from None
    values = _values(parameters)
    if values and all(isinstance(value, tuple) for value in values):
        raise wrong("invalid parameters: a sequence of tuples", f"{_SETS}; write a value that is a list as [...]")
    return _batch([[value] for value in values]) if values else None


def bindable_sets(sets: Any) -> Any:
    """The parameter sets of `executemany` as Arrow data; `None` and an empty list as they are."""
    if sets is None or any(hasattr(sets, name) for name in ("__arrow_c_stream__", "__arrow_c_array__")):
        return bindable(sets)
    rows = [_values(row) for row in _values(sets)]
    if any(len(row) != len(rows[0]) for row in rows):
        raise wrong("invalid parameters: the sets differ in length", "pass as many values in each set")
    return _batch([list(column) for column in zip(*rows, strict=True)]) if rows else []


def _values(parameters: Any) -> list[Any]:
    if isinstance(parameters, (str, bytes, bytearray, dict)) or not isinstance(parameters, Iterable):
        given = type(parameters).__name__
        advice = "expected a sequence of values; write (value,) for one value"
        raise wrong(f"invalid parameters of type {given}", advice)
    return list(parameters)


def _batch(columns: list[list[Any]]) -> pyarrow.RecordBatch:
    arrays = []
    for place, values in enumerate(columns, 1):
        try:
            arrays.append(_array([_plain(value) for value in values]))
        except _Unfit as error:
            raise wrong(f"invalid parameter {place}: {error}", error.advice) from None
        except _WRONG as error:
            raise wrong(f"invalid parameter {place}: {_line(error)}", _VALUES) from None
    return pyarrow.record_batch(arrays, names=[str(place) for place in range(len(arrays))])


def _array(values: list[Any]) -> pyarrow.Array:
    """The values of a parameter in all sets."""
    try:
        return pyarrow.array(values)
    except UnicodeEncodeError:
        raise _Unfit("the text is not valid Unicode", "remove unpaired surrogates") from None
    except (OverflowError, *_WRONG):
        types = {type(value).__name__: None for value in values if value is not None}
        if len(types) > 1:
            raise _Unfit(f"the sets have values of different types: {', '.join(types)}", "pass one type") from None
        if types.keys() & {"int", "Decimal", "timedelta", "float"}:
            raise _Unfit("the value is out of range", "pass a smaller one, or text") from None
        raise


def _plain(value: Any) -> Any:
    """A value of a type that Arrow has. The service's ids are text, so that UUIDs are text as well."""
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, UUID):
        return str(value)
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, time) and value.tzinfo is not None:
        raise _Unfit("a time of day with a time zone is not supported", "pass a datetime, or a time without a zone")
    if isinstance(value, Decimal) and not value.is_finite():
        raise _Unfit(f"a Decimal cannot be {value}", "pass a float")
    if type(value).__module__ == "numpy" and hasattr(value, "item") and not hasattr(value, "__len__"):
        # Arrow lacks units of NumPy, such as days. Integers include times in nanoseconds, which Python lacks.
        item = value.item()
        return value if isinstance(item, int) else item
    return value


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
