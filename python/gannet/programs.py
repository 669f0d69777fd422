"""Runs the programs that the wheel has. Each takes the place of this process, with its arguments."""

import os
import signal
import sys
from typing import NoReturn

from gannet import verbs

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")


def _run(name: str) -> NoReturn:
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        sys.exit(f"{name} is not part of this package of gannet, only of the wheel: there is no {path}")
    environment = dict(os.environ)
    if name != "softverbs-run":
        verbs.choose(environment)
    # Python ignores these. What it executes would, too.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(path, [name, *sys.argv[1:]], environment)


def kvserver() -> NoReturn:
    _run("kvserver")


def kvcli() -> NoReturn:
    _run("kvcli")


def softverbs_run() -> NoReturn:
    _run("softverbs-run")
