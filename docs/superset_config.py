"""What Superset needs to know of savedsearch: the dialect, and how time is cut. To be imported by your superset_config.py."""

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
