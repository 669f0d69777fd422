#!/usr/bin/env python3
"""Looks at a running kvserver as people do: /metrics through promtool, the page in a browser.

    page_test.py --build DIR --source DIR [--screenshots DIR]

Fails if a figure of the page differs from /metrics, if promtool finds fault with the metrics or with
the alert rules, or if anything of the page does not fit into a window, with every option of the server
on. --screenshots also takes pictures of the page, in two widths.
"""

import argparse
import html
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

WAIT_S = 5
HANG_S = 300  # a browser takes a minute where thirty others want the same cores
TRIES = 6


def run(command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=HANG_S, **more)


class Server:
    """A kvserver of its own, on ports of its own, with two rails."""

    def __init__(self, build, home, *options):
        self.log = open(os.path.join(home, "kvserver.log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [f"{build}/bin/kvserver", "--memory=64M", "--listen=127.0.0.1:0,127.0.1.1:0", "--http=127.0.0.1:0",
             "--slowlog_us=1", *options],
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=os.environ | {"SOFTVERBS_DEVICES": "2"})
        ready = self.process.stdout.readline().split()
        assert ready and ready[0] == "READY", self.said()
        self.address = ready[1]
        self.http = re.search(r"shows itself at (\S+)", self.said()).group(1)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def get(self, path):
        with urllib.request.urlopen(self.http + path, timeout=HANG_S) as answer:
            return answer.read().decode()

    def metrics(self):
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
                for line in self.get("/metrics").split("\n") if line and not line.startswith("#")}

    def stop(self):
        self.process.terminate()
        assert self.process.wait(20) == 0, self.said()


def hits(server):
    return server.metrics()['gannet_client_gets_total{result="hit"}']


def use(server, build):
    """Some operations of all kinds, by a client that ends at once. What it did counts all the same."""
    script = "".join(f"put key{i} value{i}\n" for i in range(50))
    script += "".join(f"get key{i}\n" for i in range(60)) + "del key0\n"
    # A client that ends waits for the server's device, but not for long. If the machine was too busy, another tries.
    for _ in range(TRIES):
        before = hits(server)
        client = subprocess.run([f"{build}/bin/kvcli", f"--server={server.address}"], input=script,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True, check=False, timeout=HANG_S)
        assert client.returncode == 1  # ten keys were not there
        until = time.monotonic() + WAIT_S  # the server may still have to read the client's last message
        while time.monotonic() < until:
            if hits(server) == before + 50:
                return
            time.sleep(0.1)
    raise AssertionError(f"{TRIES} clients told nothing of what they did: {server.metrics()}")


# A page with the server's page in two widths, which says what does not fit: what makes the page wider
# than its window, tables that scroll sideways, and what reaches out of its card.
FRAMES = """<!doctype html><body style="margin: 0"><pre id="found"></pre>
<iframe src="/large/" width="1280" height="2400" style="border: 0"></iframe>
<iframe src="/large/" width="390" height="4200" style="border: 0"></iframe>
<iframe src="/plain/" width="1280" height="2400" style="border: 0"></iframe>
<script>
function look(frame) {
  const page = frame.contentDocument, wide = e => e.scrollWidth > e.clientWidth + 1;
  const title = e => (e.closest("section")?.querySelector("h2").textContent ?? e.className) + ": " + e.textContent.slice(0, 40);
  const out = e => e.getBoundingClientRect().right > e.closest("section, .number, header").getBoundingClientRect().right + 1;
  return { width: frame.clientWidth, wider: wide(page.documentElement) ? page.documentElement.scrollWidth : 0,
           state: page.getElementById("state").textContent,
           axis: (page.getElementById("plot_top")?.textContent ?? "") && page.getElementById("plot_from").textContent,
           store: page.getElementById("store").textContent,
           tier: page.getElementById("tier").hidden ? "" : page.getElementById("tier").textContent,
           group: page.getElementById("group").hidden ? "" : page.getElementById("group").textContent,
           scroll: [...page.querySelectorAll(".scroll")].filter(wide).map(title),
           outside: [...page.querySelectorAll("td, th, b, span, h2")].filter(e => !e.closest(".scroll") && e.closest("section, .number, header") && out(e)).map(title) };
}
// The browser's clock runs faster than the server's, of which rates need more than a second.
const timer = setInterval(() => {
  const all = [...document.querySelectorAll("iframe")].map(look);
  if (!all.every(it => it.axis)) return;
  clearInterval(timer);
  document.getElementById("found").textContent = JSON.stringify(all);
}, 2000);
</script></body>"""


def with_large_figures(status):
    """A store that has run for long: what is shown is as wide as it gets."""
    status["server"]["name"] = "session-cache-frankfurt-17"
    status["store"].update(items=1234567890, heap_bytes=1234567890123, heap_total=1334567890123, slots_used=1234567890,
                           slots_total=4234567890, items_evicted=1234567890, evicted_age_ms=3456789012, disk_bytes=1534567890123,
                           disk_behind_bytes=67108864, disk_behind_ms=123456, disk_refused=1234567890,
                           tier_disk=4, tier_bytes=1534567890123, tier_page_cache=1, items_on_disk=1234567890, tier_stub_bytes=123456789012,
                           tier_stub_budget=334567890123, tier_reads=10**12, tier_reads_failed=1234567, tier_written=1234567890)
    status["clients"].update({name: status["clients"][name] + 10**12 for name in ("hits", "misses", "reads")})
    status["group"] = {"node": "session-cache-frankfurt-17-a", "role": "primary", "epoch": 1234567, "primary": "session-cache-frankfurt-17-a",
                       "applied": 0, "end": 10**12, "committed": 10**12, "lease_ms": 9999, "waiting_bytes": 4194304, "links_broken": 1234567,
                       "cluster": "frankfurt", "group": "session-cache-frankfurt-17", "joined_percent": 0,
                       "removed": 1234567, "backups": [{"node": "session-cache-frankfurt-17-b", "linked": True, "in_sync": True,
                                                        "heard": True, "lag_bytes": 16777216}]}
    for entry in status["slow"]["list"]:
        entry.update(us=12345678, value_bytes=67108000, peer="10.123.123.123:54321", key="user:" + 27 * "x")
    for entry in status["connections"]:
        entry.update(peer="10.123.123.123:54321", connected_ms=3456789012, hits=10**12, requests=10**12, session=4000000000)
    for entry in status["locks"]["list"]:
        entry.update(peer="10.123.123.123:54321", held_ms=3456789012, lease_ms=123456)
    return status


class Viewer(http.server.ThreadingHTTPServer):
    """Shows the server's page in frames, which the server itself does not allow, with large figures."""

    daemon_threads = True

    def __init__(self, server):
        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path == "/frames":
                    body = FRAMES
                elif self.path == "/plain/status.json":
                    body = server.get("/status.json")
                elif self.path == "/large/status.json":
                    body = json.dumps(with_large_figures(json.loads(server.get("/status.json"))))
                else:
                    body = server.get("/")
                self.send_response(200)
                self.send_header("Content-Type", "application/json" if "json" in self.path else "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Answer)
        self.http = f"http://127.0.0.1:{self.server_address[1]}/frames"
        threading.Thread(target=self.serve_forever, daemon=True).start()


def check_that_locks_are_seen(server, holder):
    """Takes a lock, and looks at the server only later. It knows since when the lock is held all the same."""
    for pause in (2, 4, 8, 16, 32):  # a busy machine may not let the server look in the first ones
        holder.stdin.write("lock job\n")
        holder.stdin.flush()
        assert json.loads(holder.stdout.readline())["locked"]
        time.sleep(pause)  # a look would be the one that finds the lock
        locks = json.loads(server.get("/status.json"))["locks"]
        assert locks["held"] == 1, locks
        if locks["list"][0]["held_ms"] > 0:
            return
        holder.stdin.write("unlock job\n")
        holder.stdin.flush()
        holder.stdout.readline()
    raise AssertionError(f"a lock that is held for {pause} s was not seen: {locks}")


def check_fit(build, home, folder):
    """With every option on, nothing is cut, and only a phone scrolls a table sideways."""
    os.mkdir(f"{home}/data", 0o700)
    server = Server(build, home, f"--data={home}/data", "--on_full=evict", "--http_show_keys", "--name=cache-1")
    holder = subprocess.Popen([f"{build}/bin/kvcli", f"--server={server.address}", "--json"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    try:
        check_that_locks_are_seen(server, holder)
        holder.stdin.write("".join(f"put key{i} value{i}\n" for i in range(50)))
        holder.stdin.flush()
        viewer = Viewer(server)
        found = re.search(r'id="found">(\[.*?\])</pre>', browse(viewer, home, "--window-size=3000,4300", "--dump-dom"))
        assert found, "the frames say nothing"
        wide, phone, plain = json.loads(html.unescape(found.group(1)))
        assert "evicts; nothing had to go yet" in plain["store"], plain
        assert plain["group"] == "", "a server in no group shows one"
        assert plain["tier"] == "", "a server without a disk behind the memory shows one"
        for frame in (wide, phone):
            assert "1,234,567" in frame["group"] and "session-cache-frankfurt-17-b" in frame["group"], frame
            assert frame["state"] == "live", frame
            assert "failed: values are evicted instead" in frame["tier"] and "1,234,567 found nothing" in frame["tier"], frame
            assert not frame["wider"] and not frame["outside"], frame
            assert "a power cut would take" in frame["store"] and "what goes was written" in frame["store"], frame
        assert not wide["scroll"], wide
        if folder:
            browse(viewer, home, "--window-size=3000,4300", f"--screenshot={os.path.join(folder, 'page-all.png')}")
        viewer.shutdown()
    finally:
        holder.stdin.close()
        holder.wait(20)
        server.stop()


def browse(server, home, *how):
    # The browser's clock stands still while it waits for an answer, and else runs as fast as it can. So
    # this is long enough for the page to see more than a second of the server's clock, and to show rates.
    return run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}/chromium",
                "--virtual-time-budget=400000", "--hide-scrollbars", *how, server.http]).stdout


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
    assert shown["items"] == 49 and shown["deleted"] >= 1 and shown["misses"] >= 10, shown
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
    """Everything that rules and dashboard ask for is there. proxy_http.py looks for the proxy's, group_test.py for a group's."""
    with open(f"{source}/packaging/prometheus/gannet.rules.yml", encoding="utf-8") as file:
        expressions += " ".join(re.findall(r"expr: (.*)", file.read()))
    known = {name.partition("{")[0] for name in metrics}
    unknown = set(re.findall(r"\bgannet_(?!proxy_|group_)\w+", expressions)) - known
    assert not unknown, f"no such metrics: {unknown}"


def screenshots(server, home, folder):
    for name, size in (("page", "1280,1400"), ("page-phone", "500,2000")):
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
        check_fit(arguments.build, home, arguments.screenshots)


if __name__ == "__main__":
    sys.exit(main())
