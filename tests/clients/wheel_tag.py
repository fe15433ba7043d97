"""The platform tag of the wheel: that of the machine, and of the oldest macOS that release.yml builds for."""

import importlib.util
import pathlib
import re
from unittest import mock

ROOT = pathlib.Path(__file__).parents[2]
specification = importlib.util.spec_from_file_location("build_hook", ROOT / "python" / "build_hook.py")
build_hook = importlib.util.module_from_spec(specification)
specification.loader.exec_module(build_hook)


def tag(system, machine, python):
    """The tag on a machine whose Python calls its platform `python`."""
    with mock.patch("platform.system", lambda: system), mock.patch("platform.machine", lambda: machine):
        with mock.patch("sysconfig.get_platform", lambda: python):
            return build_hook.platform_tag()


assert tag("Darwin", "arm64", "macosx-10.9-universal2") == "macosx_11_0_arm64"
assert tag("Darwin", "x86_64", "macosx-13.0-x86_64") == "macosx_10_12_x86_64"
assert tag("Linux", "x86_64", "linux-x86_64") == "linux_x86_64"
assert tag("Linux", "aarch64", "linux-aarch64") == "linux_aarch64"

workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
built = dict(re.findall(r'target: (\w+)-apple-darwin\n +macos: "([\d.]+)"', workflow))
assert {"arm64": built["aarch64"], "x86_64": built["x86_64"]} == {
    machine: oldest.replace("_", ".") for machine, oldest in build_hook.MACOS.items()
}, "release.yml builds for another macOS than the wheel is tagged for"
print("the platform tags of wheels passed")
