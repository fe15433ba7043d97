"""Adds the program and the driver to the wheel. `packaging/wheel` names them in the environment."""

import os
import pathlib
import sysconfig

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Binaries(BuildHookInterface):
    """See the module."""

    def initialize(self, version, build_data):
        """Called by hatchling before it packs the files."""
        if version == "editable":
            return
        program, driver = (pathlib.Path(os.environ[name]) for name in ("SAVEDSEARCH_PROGRAM", "SAVEDSEARCH_DRIVER"))
        build_data["pure_python"] = False
        # The package has no extension module, so that one wheel serves every version of Python.
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["force_include"][str(pathlib.Path(self.root).parent / "LICENSE")] = "savedsearch/LICENSE"
        build_data["shared_scripts"][str(program)] = "savedsearch"
        build_data["force_include"][str(driver)] = f"savedsearch/driver/{driver.name}"
