"""Places of the ADBC driver, for other programs of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NAMES = {"darwin": "libadbc_driver_savedsearch.dylib", "win32": "adbc_driver_savedsearch.dll"}


def driver_path() -> Path:
    """The ADBC driver, a C library: that of this wheel, or the one that `SAVEDSEARCH_DRIVER` names."""
    named = os.environ.get("SAVEDSEARCH_DRIVER")
    return Path(named) if named else driver_folder() / _NAMES.get(sys.platform, "libadbc_driver_savedsearch.so")


def driver_folder() -> Path:
    """The folder of the driver and its manifest `savedsearch.toml`. With this folder in `ADBC_DRIVER_PATH`, every driver manager
    finds the driver by the name `savedsearch`."""
    return Path(__file__).parent / "driver"
