"""Runs the Python examples of README.md and docs/ that use a server, and checks that the packages they install are those of the tests.

docs/clients.md names each package that the tests install in a fixed version.
"""

import pathlib
import re

from service import Served

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
PAGES = {page.relative_to(ROOT): page.read_text() for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]}

programs = [(name, block) for name, text in PAGES.items() for block in re.findall(r"```python\n(.*?)```", text, re.S)]
# Others use the package `savedsearch`; python_package.py runs them.
programs = [(name, block) for name, block in programs if "grpc://" in block]
assert programs, "no Python examples in the documentation"
with Served() as served:
    for name, block in programs:
        assert "grpc://127.0.0.1:50051" in block, name
        exec(compile(block.replace("grpc://127.0.0.1:50051", served.uri), name, "exec"), {})

installed = (HERE / "run").read_text()
lines = [line for text in PAGES.values() for line in re.findall(r"^pip install (.*)$", text, re.M)]
named = {package.strip("'") for line in lines for package in line.split() if not package.endswith(".whl")}
missing = {package for package in named if re.split("[<=]", package)[0] not in installed}
assert named and not missing, f"not installed by the tests: {missing}"

# Programs that only build or check something are no clients.
clients = re.sub(r"^python tools .*$", "", installed, flags=re.M)
pinned = set(re.findall(r"(?<![\w/])(@?[A-Za-z0-9][\w./-]*?)(?:\[\w+\])?(?:==|@)(\d[\w.]*)", clients))
page = PAGES[pathlib.Path("docs/clients.md")]
unnamed = sorted(f"{name} {version}" for name, version in pinned if f"`{name}` {version}" not in page)
assert len(pinned) > 30 and not unnamed, f"docs/clients.md lacks {unnamed}"
print("the Python examples of the documentation passed")
