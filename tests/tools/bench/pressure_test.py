#!/usr/bin/env python3
"""Runs tools/bench/pressure.py for seconds, and judges its parts by what is known.

    pressure_test.py --source DIR --build DIR
"""

import argparse
import os
import sys
import tempfile

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--source", required=True)
parser.add_argument("--build", required=True)
arguments = parser.parse_args()
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(arguments.source, "tools/bench"))
import pressure  # noqa: E402

LOG = """\
I20261124 22:49:18.1 7 connection_log.cc:11] session 1: connection 1 from 127.0.0.1:59268, queue pair 0
I20261124 22:49:19.2 7 connection_log.cc:11] session 2: connection 2 from 127.0.0.1:59269, queue pair 0 (and 6 more; in all 7 came and 0 went)
I20261124 22:49:20.3 7 main.cc:1] took more than 100 ms
I20261124 22:49:21.4 7 connection_log.cc:11] closing connection 2 of session 2: the peer is silent
I20261124 22:49:22.5 7 connection_log.cc:11] closing connection 3 of session 3: disconnected (and 2 more; in all 1 came and 2 went)
"""
LATENCIES = """\
       Value     Percentile TotalCount 1/(1-Percentile)

       1.000 0.500000000000          5           2.00
 1000000.000 0.700000000000          7           3.33
 1000001.000 0.900000000000          9          10.00
 5000000.000 1.000000000000         10
#[Mean    =       5.0]
"""


def check(what, found, expected):
    assert found == expected, f"{what}: {found}, not {expected}"


with tempfile.TemporaryDirectory() as folder:
    log = os.path.join(folder, "log")
    with open(log, "w", encoding="utf-8") as file:
        file.write(LOG)
    check("the log", pressure.ServerLog(log).read(), (9, 3, ["the peer is silent", "disconnected"]))
    with open(os.path.join(folder, "gannet.hgrm"), "w", encoding="utf-8") as file:
        file.write(LATENCIES)
    load = pressure.Load(arguments.build, "gannet", "", argparse.Namespace(clients=1, rate=1, minutes=1), folder)
    check("late answers", load.late(), 3)
    result = pressure.measure(argparse.Namespace(build=arguments.build, minutes=0.02, load=1, clients=2, rate=200), folder)
pressure.show(result)
for row in result["stores"]:
    assert row["operations"] > 0, row
for store, row in result["redis_benchmark"].items():
    assert row["runs"] >= 1, (store, row)
