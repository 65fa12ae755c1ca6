# SPDX-License-Identifier: MIT
"""The program `spotter`, which does the measuring: where it is, and what it says."""
import json
import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional


class SpotterError(RuntimeError):
    """What the program `spotter` said when it could not do it."""


def _installed(folder: str) -> str:
    """Where the program is that came with the package in this folder: PREFIX/bin for PREFIX/lib/python3.11/site-packages
    and PREFIX/lib/spotter/python, FOLDER/bin after `pip install --target FOLDER`. It need not be on PATH: that of a
    notebook's kernel may be another."""
    lib = os.path.dirname(os.path.dirname(folder))
    prefix = os.path.dirname(lib) if os.path.basename(lib) in ("lib", "lib64") else folder
    return os.path.join(prefix, "bin", "spotter")


def executable() -> str:
    """$SPOTTER_EXE, the one that came with this package, on PATH, or in a build tree."""
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.dirname(here)
    for file in (os.environ.get("SPOTTER_EXE"), os.path.join(here, "bin", "spotter"), _installed(folder),
                 shutil.which("spotter"), os.path.join(os.path.dirname(folder), "build", "spotter")):
        if file and os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    raise SpotterError("the program 'spotter' is not on PATH; install it, or name it in $SPOTTER_EXE")


def environment() -> Dict[str, str]:
    """For the program: without the hooks, which are for the training."""
    return {k: v for k, v in os.environ.items() if k not in ("SPOTTER_MARKS", "SPOTTER_RUN")}


def ask(*arguments: str, timeout: Optional[float] = 120) -> str:
    """What `spotter ARGUMENTS` prints."""
    command: List[str] = [executable(), *arguments]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, env=environment())
    except subprocess.TimeoutExpired:
        raise SpotterError("'spotter %s' did not answer within %g s" % (arguments[0], timeout or 0)) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise SpotterError(said or "'spotter %s' ended with %d" % (arguments[0], done.returncode))
    return done.stdout.decode("utf-8", "replace")


def ask_json(*arguments: str, timeout: Optional[float] = 120) -> Any:
    return json.loads(ask(*arguments, "--json", timeout=timeout))
