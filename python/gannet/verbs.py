"""Which verbs libraries a package uses that brings softverbs with it, as the wheel does.

Drivers of RDMA devices fit only the libibverbs that they were installed with. So on a machine with
RDMA devices the package uses the machine's libraries. Elsewhere it uses softverbs, which takes their
place (gannet/lib/softverbs), and nothing of the machine's.
"""

import ctypes
import functools
import glob
import os
import sys
from typing import Dict, Optional

LIBRARIES = ("libibverbs.so.1", "librdmacm.so.1")
SOFTVERBS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "softverbs")
DEVICES = "/dev/infiniband/uverbs*"
# In the environment of a program, they tell it that it is on softverbs, and what LD_LIBRARY_PATH was before
# (common/rdma/softverbs_exec.cc). It restores that.
_PATH = "LD_LIBRARY_PATH"
_PATH_BEFORE = "GANNET_SOFTVERBS_EXEC"


@functools.lru_cache(maxsize=None)
def _load_those_of_the_machine() -> bool:
    """Loads the machine's libraries, if it has RDMA devices. Returns whether they are there.

    Decides once: as soon as gannet._capi is loaded, softverbs would answer by their names.
    """
    devices = sorted(glob.glob(DEVICES))
    if not devices:
        return False
    try:
        for library in LIBRARIES:
            ctypes.CDLL(library)
    except OSError as error:
        print(f"gannet: {devices[0]} is an RDMA device, but its libraries cannot be loaded ({error}). Gannet runs on "
              "softverbs, the user-space device for one host. To use the device, install libibverbs1, librdmacm1 and "
              "ibverbs-providers", file=sys.stderr)
        return False
    return True


def load() -> None:
    """Chooses for this process. Call it before gannet._capi is loaded.

    What is loaded already satisfies libgannet. Otherwise its own path leads to softverbs.
    """
    if os.path.isdir(SOFTVERBS):
        _load_those_of_the_machine()


def choose(environment: Dict[str, str]) -> None:
    """Chooses for a program of the package that is going to run in `environment`."""
    if not os.path.isdir(SOFTVERBS) or _load_those_of_the_machine():
        return
    before: Optional[str] = environment.get(_PATH)
    environment[_PATH_BEFORE] = "" if before is None else "=" + before
    environment[_PATH] = SOFTVERBS if before is None else f"{SOFTVERBS}:{before}"
