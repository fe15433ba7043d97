"""`python -m savedsearch [FOLDER]` makes the ADBC driver known to driver managers in other languages."""

import argparse

from savedsearch.library import write_manifest

parser = argparse.ArgumentParser(
    prog="python -m savedsearch",
    description="Makes the ADBC driver known to driver managers in other languages: writes its manifest, and prints the path of it.",
    epilog="The program itself is `savedsearch`.",
)
parser.add_argument("folder", nargs="?", help="folder for the manifest; default: the one in which all driver managers look")
folder = parser.parse_args().folder
if folder == "":
    parser.error("the folder is empty; leave it out to use the default")
print(write_manifest(folder))
