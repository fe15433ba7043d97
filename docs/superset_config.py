"""Superset settings for savedsearch: the SQL dialect and the time grains. Use it as superset_config.py, or import it there."""

import flightsql.sqlalchemy  # noqa: F401 (registers datafusion+flightsql://)

_GRAINS = {
    "PT1M": "minute",
    "PT1H": "hour",
    "P1D": "day",
    "P1W": "week",
    "P1M": "month",
    "P3M": "quarter",
    "P1Y": "year",
}
TIME_GRAIN_ADDON_EXPRESSIONS = {"base": {grain: f"date_trunc('{part}', {{col}})" for grain, part in _GRAINS.items()}}
