"""Runs the README's Python examples, and checks that the packages it installs are those that the tests install."""

import pathlib
import re

from service import Served

HERE = pathlib.Path(__file__).parent
README = (HERE.parents[1] / "README.md").read_text()

blocks = re.findall(r"```python\n(.*?)```", README, re.S)
assert blocks, "no Python examples in the README"
with Served() as served:
    for block in blocks:
        assert "grpc://127.0.0.1:50051" in block
        exec(compile(block.replace("grpc://127.0.0.1:50051", served.uri), "README.md", "exec"), {})

installed = (HERE / "run").read_text()
named = {package.strip("'") for line in re.findall(r"^pip install (.*)$", README, re.M) for package in line.split()}
missing = {package for package in named if re.split("[<=]", package)[0] not in installed}
assert named and not missing, f"not installed by the tests: {missing}"
print("the README's Python examples passed")
