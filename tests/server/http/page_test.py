#!/usr/bin/env python3
"""Looks at a running kvserver as people do: /metrics through promtool, the page in a browser.

    page_test.py --build DIR --source DIR [--screenshots DIR]

Fails if a figure of the page differs from /metrics, or promtool finds fault with the metrics or with
the alert rules. --screenshots also takes pictures of the page, in two widths.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

WAIT_S = 30


def run(command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=90, **more)


class Server:
    """A kvserver of its own, on ports of its own."""

    def __init__(self, build, home):
        self.log = open(os.path.join(home, "kvserver.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [f"{build}/bin/kvserver", "--memory=64M", "--listen=127.0.0.1:0", "--http=127.0.0.1:0", "--slowlog_us=1"],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        ready = self.process.stdout.readline().split()
        assert ready and ready[0] == "READY", self.said()
        self.address = ready[1]
        self.http = re.search(r"shows itself at (\S+)", self.said()).group(1)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def get(self, path):
        with urllib.request.urlopen(self.http + path, timeout=10) as answer:
            return answer.read().decode()

    def metrics(self):
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
                for line in self.get("/metrics").split("\n") if line and not line.startswith("#")}

    def stop(self):
        self.process.terminate()
        assert self.process.wait(20) == 0, self.said()


def use(server, build):
    """Some operations of all kinds, by a client that lives long enough to report them."""
    script = "".join(f"put key{i} value{i}\n" for i in range(50))
    script += "".join(f"get key{i}\n" for i in range(60)) + "del key0\n"
    client = subprocess.Popen([f"{build}/bin/kvcli", f"--server={server.address}"], stdin=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    client.stdin.write(script)
    client.stdin.flush()
    # A report rides on a heartbeat; the client stays until it came.
    until = time.monotonic() + WAIT_S
    while True:
        metrics = server.metrics()
        if metrics['gannet_client_gets_total{result="hit"}'] >= 50:
            break
        assert time.monotonic() < until, metrics
        time.sleep(0.1)
    client.stdin.close()
    assert client.wait(20) == 1  # ten keys were not there


def browse(server, home, *how):
    # The browser's clock stands still while it waits for an answer, and else runs as fast as it can. So
    # this is long enough for the page to see more than a second of the server's clock, and to show rates.
    return run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}/chromium",
                "--virtual-time-budget=400000", "--hide-scrollbars", *how, server.http + "/"]).stdout


def check_page(server, home):
    page = browse(server, home, "--dump-dom")
    shown = {name: int(value) for name, value in re.findall(r'id="total_(\w+)" data-value="(\d+)"', page)}
    metrics = server.metrics()
    wanted = {
        "hits": 'gannet_client_gets_total{result="hit"}',
        "misses": 'gannet_client_gets_total{result="miss"}',
        "reads": "gannet_client_reads_total",
        "gets_by_rpc": "gannet_client_gets_by_rpc_total",
        "request_put": 'gannet_requests_total{opcode="put"}',
        "items": "gannet_items",
        "deleted": 'gannet_items_removed_total{reason="deleted"}',
        "sampled_get": 'gannet_client_latency_seconds_count{kind="get"}',
    }
    for name, metric in wanted.items():
        assert shown.get(name) == metrics[metric], f"{name}: the page has {shown.get(name)}, {metric} is {metrics[metric]}"
    assert shown["items"] == 49 and shown["deleted"] == 1 and shown["misses"] >= 10, shown
    assert re.search(r'id="state" class="">live<', page), "the page is not live"
    assert re.search(r'id="slow_count">[1-9]', page), "no slow requests, although all are"
    assert re.search(r'id="gets">\d', page) and re.search(r'id="ops">\d', page), "no rates"
    assert "key1" not in page and "value1" not in page, "keys or values are shown"
    assert metrics['gannet_heap_class_bytes{block_bytes="48"}'] > 0, metrics


def check_rules(source):
    run(["promtool", "check", "rules", f"{source}/packaging/prometheus/gannet.rules.yml"])
    with open(f"{source}/packaging/grafana/gannet.json", encoding="utf-8") as file:
        dashboard = json.load(file)
    return " ".join(target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", []))


def check_names(source, expressions, metrics):
    """Everything that rules and dashboard ask for is there."""
    with open(f"{source}/packaging/prometheus/gannet.rules.yml", encoding="utf-8") as file:
        expressions += " ".join(re.findall(r"expr: (.*)", file.read()))
    known = {name.partition("{")[0] for name in metrics}
    unknown = set(re.findall(r"\bgannet_\w+", expressions)) - known
    assert not unknown, f"no such metrics: {unknown}"


def screenshots(server, home, folder):
    for name, size in (("page", "1280,1150"), ("page-phone", "500,1400")):
        browse(server, home, f"--window-size={size}", f"--screenshot={os.path.join(folder, name)}.png")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--screenshots")
    arguments = parser.parse_args()
    for program in ("chromium", "promtool"):
        assert shutil.which(program), f"{program} is missing: ./dev deps installs it"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        server = Server(arguments.build, home)
        try:
            assert server.get("/healthz") == "ok\n" and server.get("/readyz") == "ready\n"
            use(server, arguments.build)
            run(["promtool", "check", "metrics"], input=server.get("/metrics"))
            check_page(server, home)
            check_names(arguments.source, check_rules(arguments.source), server.metrics())
            if arguments.screenshots:
                screenshots(server, home, arguments.screenshots)
        finally:
            server.stop()


if __name__ == "__main__":
    sys.exit(main())
