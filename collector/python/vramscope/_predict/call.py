"""Calls a function of a module: what `vramscope.predict` runs for a function.

    python -m vramscope._predict.call MODULE FILE NAME
"""

import importlib
import os
import runpy
import sys


def main(module, file, name):
    """Imports a module, or runs the file of a program without what it does as a program, and calls a function of it."""
    if module == "__main__":
        sys.path.insert(0, os.path.dirname(file))
        function = runpy.run_path(file, run_name="__vramscope__")[name]
    else:
        function = getattr(importlib.import_module(module), name)
    function()


if __name__ == "__main__":
    main(*sys.argv[1:])
