"""`mypy --strict` on the installed package, and on the examples of README.md and docs/python.md: typed.py PYTHON. PYTHON has the
package; this Python has mypy."""

import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).parents[2]
# pyarrow has no types.
MYPY = [sys.executable, "-m", "mypy", "--strict", "--disable-error-code", "import-untyped", "--python-executable", sys.argv[1]]

texts = [(ROOT / name).read_text() for name in ("README.md", "docs/python.md")]
examples = [block for text in texts for block in re.findall(r"```python\n(.*?)```", text, re.S) if "import savedsearch" in block]
assert len(examples) >= 5, "too few Python examples in the documentation"
functions = [f"def example_{number}() -> None:\n{textwrap.indent(block, '    ')}" for number, block in enumerate(examples)]
with tempfile.TemporaryDirectory() as folder:
    pathlib.Path(folder, "examples.py").write_text("\n\n".join(functions))
    for checked in (["-p", "savedsearch"], ["examples.py"]):
        done = subprocess.run([*MYPY, *checked], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
print("the types of the Python package passed")
