"""`python -m savedsearch [FOLDER]` makes the ADBC driver known to driver managers in other languages."""

import sys

from savedsearch.library import write_manifest

if len(sys.argv) > 2 or "-h" in sys.argv or "--help" in sys.argv:
    sys.exit(f"{__doc__}\nThe program itself is `savedsearch`.")
print(write_manifest(*sys.argv[1:]))
