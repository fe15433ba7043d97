"""The ADBC driver of this package, and its manifest for other programs of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_NAMES = {"darwin": "libadbc_driver_savedsearch.dylib", "win32": "adbc_driver_savedsearch.dll"}


def driver_path() -> Path:
    """The ADBC driver, a C library: that of this wheel, or the one that `SAVEDSEARCH_DRIVER` names."""
    named = os.environ.get("SAVEDSEARCH_DRIVER")
    name = _NAMES.get(sys.platform, "libadbc_driver_savedsearch.so")
    return Path(named) if named else Path(__file__).parent / "driver" / name


def write_manifest(folder: str | os.PathLike[str] | None = None) -> Path:
    """Writes the manifest `savedsearch.toml`, by which driver managers in R, Go and other languages find the driver of this package
    under the name `savedsearch`. Returns its path.

    Without a folder, it is the one in which all of them look: `adbc/drivers` in the user's configuration folder.
    """
    from . import __version__

    folder = Path(folder) if folder is not None else _usual_folder()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "savedsearch.toml"
    # Driver managers do not take relative paths.
    library = str(driver_path().resolve()).replace("\\", "\\\\").replace('"', '\\"')
    file.write_text(
        f'manifest_version = 1\nname = "ADBC driver for savedsearch"\nlicense = "Apache-2.0"\nversion = "{__version__}"\n\n'
        f'[ADBC]\nversion = "1.1.0"\n\n[Driver]\nentrypoint = "AdbcDriverSavedsearchInit"\nshared = "{library}"\n'
    )
    return file


def _usual_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "ADBC" / "Drivers"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "adbc" / "drivers"
