"""Comparison of rows of different clients: values in one form, numbers with a tolerance of floating point."""

import datetime
import decimal
import math


def canonical(value, like=None):
    """A value in a form that is equal for equal values. `like` is the true value, whose type text is read as."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if isinstance(like, datetime.datetime):
            return canonical(datetime.datetime.fromisoformat(value.replace("Z", "+00:00")))
        if isinstance(like, datetime.date):
            return canonical(datetime.date.fromisoformat(value))
        return value
    if isinstance(value, (int, float, decimal.Decimal)):
        if isinstance(value, (float, decimal.Decimal)) and not math.isfinite(value):
            return str(float(value))
        return decimal.Decimal(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            value = value.replace(tzinfo=datetime.timezone.utc)
        return value.astimezone(datetime.timezone.utc).isoformat(timespec="microseconds")
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, (list, tuple)):
        return tuple(canonical(part) for part in value)
    return str(value)


def close(a, b):
    if isinstance(a, decimal.Decimal) and isinstance(b, decimal.Decimal):
        return a == b or abs(a - b) <= max(abs(a), abs(b)) * decimal.Decimal("1e-9")
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(close, a, b))
    return type(a) is type(b) and a == b


def order(row):
    # Adding zero makes zero of a negative zero.
    return [(cell is not None, type(cell).__name__, str(round(cell, 6).normalize() + 0) if isinstance(cell, decimal.Decimal) and cell.is_finite() and abs(cell) < 10**15 else str(cell)) for cell in row]


def same(ours, truth, ordered):
    """Compares rows, in their order if it is determined."""
    if len(ours) != len(truth):
        return False
    if truth and ours and len(ours[0]) != len(truth[0]):
        return False
    likes = [next((row[at] for row in truth if row[at] is not None), None) for at in range(len(truth[0]))] if truth else []
    try:
        ours = [[canonical(cell, like) for cell, like in zip(row, likes)] for row in ours]
    except ValueError:
        return False
    truth = [[canonical(cell) for cell in row] for row in truth]
    if not ordered:
        ours, truth = sorted(ours, key=order), sorted(truth, key=order)
    return all(close(a, b) for mine, other in zip(ours, truth) for a, b in zip(mine, other))
