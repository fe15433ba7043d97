"""`python -m savedsearch [FOLDER]` makes the ADBC driver known to driver managers in other languages."""

import argparse
import os

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
# A command of the program must not become a folder.
if folder and os.path.basename(folder) == folder and not os.path.isdir(folder):
    path = os.path.join(os.curdir, folder)
    parser.error(f"there is no folder {folder}; write {path} to create it, or `savedsearch {folder}` to run the program")
try:
    print(write_manifest(folder))
except OSError as error:
    parser.exit(1, f"{parser.prog}: cannot write the manifest: {error}\n")
