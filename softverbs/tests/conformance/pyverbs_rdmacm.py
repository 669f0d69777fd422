"""Runs the package's own tests of rdma_cm, which Debian has packed among its documentation."""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile

PACKED = "/usr/share/doc/rdma-core/tests"


def unpack(folder):
    for name in os.listdir(PACKED):
        way = gzip.open if name.endswith(".gz") else open
        with way(os.path.join(PACKED, name), "rb") as packed, \
                open(os.path.join(folder, name.removesuffix(".gz")), "wb") as file:
            shutil.copyfileobj(packed, file)


with tempfile.TemporaryDirectory() as work:
    tests = os.path.join(work, "tests")
    os.mkdir(tests)
    unpack(tests)
    sys.exit(subprocess.run([sys.executable, "tests/run_tests.py", "--dev", "softverbs0", "--gid", "0", "-v",
                             "tests.test_rdmacm"], cwd=work, check=False).returncode)
