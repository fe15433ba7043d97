"""Services whose dialects nobody described: the probe, and 18 questions with the profile exactly as it was written.

dialects.py SCRIPT: the script of these services (try_dialects.py). At least 16 of 18 questions have to be answered rightly after 25
calls, and none wrongly. The question about the list expects the search history among the saved searches, which is a table of its own
here.
"""
import re
import subprocess
import sys

DIALECTS = ["earshot", "vigie", "klaxon"]


def main():
    for dialect in DIALECTS:
        run = subprocess.run([sys.executable, sys.argv[1], dialect], capture_output=True, text=True, timeout=600)
        shown = run.stdout + run.stderr
        right = re.search(r"(\d+)/18 dialects", shown)
        wrong = [line.split()[0] for line in run.stdout.splitlines() if re.match(r"\s+\w+\s+WRONG\b", line)]
        assert right and int(right[1]) >= 16 and set(wrong) <= {"list"}, shown
        print(f"{dialect}: {right[1]} of 18 right; other rows: {', '.join(wrong) or 'none'}")


if __name__ == "__main__":
    main()
