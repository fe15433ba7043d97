"""Adds the program and the driver to the wheel. `packaging/wheel` names them in the environment."""

import os
import pathlib
import platform
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# By machine: the oldest macOS that the program runs on, as `MACOSX_DEPLOYMENT_TARGET` in release.yml says.
MACOS = {"arm64": "11_0", "x86_64": "10_12"}


def platform_tag():
    """The platform of the wheel. On macOS, `sysconfig` describes the Python that packs it, which may be a universal build; the
    program and the driver are built for the machine alone."""
    if platform.system() == "Darwin":
        machine = platform.machine()
        return f"macosx_{MACOS[machine]}_{machine}"
    return sysconfig.get_platform().replace("-", "_").replace(".", "_")


class Binaries(BuildHookInterface):
    """See the module."""

    def initialize(self, version, build_data):
        """Called by hatchling before it packs the files."""
        if version == "editable":
            return
        program, driver = (pathlib.Path(os.environ[name]) for name in ("SAVEDSEARCH_PROGRAM", "SAVEDSEARCH_DRIVER"))
        build_data["pure_python"] = False
        # The package has no extension module, so that one wheel serves every version of Python.
        build_data["tag"] = f"py3-none-{platform_tag()}"
        build_data["force_include"][str(pathlib.Path(self.root).parent / "LICENSE")] = "savedsearch/LICENSE"
        build_data["shared_scripts"][str(program)] = "savedsearch"
        build_data["force_include"][str(driver)] = f"savedsearch/driver/{driver.name}"
