#!/usr/bin/env python3
"""How long a group of servers is away when its primary dies, is stopped, or hands over.

    takeover.py --build DIR [--rounds N] [--ways kill,stop,handover] [--lease_ms 600] [--json FILE]

Runs etcd and three kvservers on this machine, and a client (takeover_client) whose threads GET, PUT and INCR without a
pause. Each round takes the primary away, waits until the client is answered again, and brings the former primary back:

  kill      kill -9, and the process is started again
  stop      SIGSTOP for --stopped_s seconds, then SIGCONT
  handover  kvcli cluster handover

The gap of a round is the longest wait for one answer. Prints p50, p99 and the longest gap of a GET and of a PUT. Fails
if a write was lost, a value was wrong, an INCR was applied twice, or a server does not come back.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cluster"))
sys.path.insert(0, HERE)
import local_cluster  # noqa: E402
import servers  # noqa: E402

NODES = ("n1", "n2", "n3")
KINDS = ("get", "put", "incr")
ANSWERS = 20  # of each thread, until the group counts as back
STEP_S = 60  # only a hang takes so long


class Client:
    """A takeover_client."""

    def __init__(self, build, endpoint, pause_us):
        self.process = subprocess.Popen([f"{build}/bin/takeover_client", f"--server={endpoint}", f"--pause_us={pause_us}"],
                                        env=os.environ | servers.softverbs(build), stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise local_cluster.Failed(f"takeover_client ended: {self.process.wait()}")
        return answer

    def await_answers(self):
        self.ask(f"answers {ANSWERS}")

    def gaps(self):
        return json.loads(self.ask("gaps"))

    def end(self):
        return json.loads(self.ask("end"))


class Rounds:
    def __init__(self, cluster, options):
        self.cluster = cluster
        self.options = options
        self.client = Client(options.build, cluster.endpoint(), options.pause_us)

    def register(self):
        """Returns what etcd says of the group."""
        return self.cluster.read("groups/" + local_cluster.GROUP)

    def await_all_in_sync(self, epoch):
        end = time.monotonic() + STEP_S
        while True:
            now = self.register()
            if now["epoch"] >= epoch and len(now["in_sync"]) == len(NODES):
                return now
            self.cluster.check_running(NODES)
            if time.monotonic() > end:
                raise local_cluster.Failed(f"not all come back: {now}\n{self.cluster.logs()}")
            time.sleep(0.02)

    def kill(self, node):
        process = self.cluster.processes[node]
        process.kill()
        process.wait()
        self.client.await_answers()
        gaps = self.client.gaps()
        self.cluster.start_server(node)
        return gaps

    def stop(self, node):
        process = self.cluster.processes[node]
        goes_on = time.monotonic() + self.options.stopped_s
        process.send_signal(signal.SIGSTOP)
        self.client.await_answers()
        time.sleep(max(0.0, goes_on - time.monotonic()))
        process.send_signal(signal.SIGCONT)
        self.client.await_answers()
        return self.client.gaps()

    def handover(self, node):
        successor = next(it for it in NODES if it != node)
        self.cluster.hand_over(local_cluster.GROUP, successor, STEP_S)
        self.client.await_answers()
        return self.client.gaps()

    def run(self, way):
        before = self.await_all_in_sync(1)
        self.client.await_answers()
        quiet = self.client.gaps()
        gaps = getattr(self, way)(before["primary"]["node"])
        after = self.await_all_in_sync(before["epoch"] + 1)
        return {"way": way, "quiet": quiet, "gaps": gaps, "epochs": after["epoch"] - before["epoch"]}


    def explain(self, row):
        """Prints what the servers logged last."""
        lines = []
        for node in NODES:
            with open(self.cluster.log_of(node), encoding="utf-8", errors="replace") as log:
                lines += [f"{line.split()[1]} {node} {line.rstrip()}" for line in log.readlines()[-20:] if line[1:4] == "202"]
        print(row, *sorted(lines), sep="\n", flush=True)


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def figures(rows, name):
    return {kind: {"p50_ms": percentile(values, 0.5), "p99_ms": percentile(values, 0.99), "max_ms": max(values)}
            for kind in KINDS if (values := [row[name][kind] for row in rows])}


def measure(options, folder):
    cluster = local_cluster.LocalCluster(options, folder)
    rows, loads = [], []
    try:
        cluster.start_etcd()
        cluster.start_servers()
        rounds = Rounds(cluster, options)
        began = time.monotonic()
        failed = None
        while len(rows) < options.rounds and time.monotonic() - began < 60 * options.minutes:
            try:
                rows.append(rounds.run(options.ways[len(rows) % len(options.ways)]))
            except local_cluster.Failed as problem:
                if not rows:
                    raise
                failed = str(problem)  # what was measured until then is told
                break
            loads.append(os.getloadavg()[0])
            if options.verbose:
                print(rows[-1], flush=True)
            if max(rows[-1]["gaps"].values()) > options.explain_ms:
                rounds.explain(rows[-1])
        counts = rounds.client.end()
        ways = {}
        for way in options.ways:
            of_way = [row for row in rows if row["way"] == way]
            if of_way:
                ways[way] = {"rounds": len(of_way), "gaps": figures(of_way, "gaps"),
                             "takeovers": sum(row["epochs"] for row in of_way)}
        return {"minutes": (time.monotonic() - began) / 60, "lease_ms": options.lease_ms, "cores": os.cpu_count(),
                "load_average": [min(loads), max(loads)], "ways": ways, "quiet": figures(rows, "quiet"),
                "failed": failed, **counts}
    finally:
        cluster.stop()


def show(result):
    low, high = result["load_average"]
    print(f"{result['minutes']:.1f} minutes, leases of {result['lease_ms']} ms, {result['cores']} cores, load average "
          f"{low:.1f} to {high:.1f}")
    for way, row in [*result["ways"].items(), ("nothing", {"gaps": result["quiet"], "rounds": None, "takeovers": 0})]:
        rounds = f"{row['rounds']} rounds, {row['takeovers']} takeovers" if row["rounds"] else "between the rounds"
        print(f"{way}: {rounds}; longest wait, ms")
        for kind in KINDS:
            gap = row["gaps"][kind]
            print(f"  {kind.upper():5} p50 {gap['p50_ms']:7.1f}  p99 {gap['p99_ms']:7.1f}  max {gap['max_ms']:7.1f}")
    print(f"{result['gets']:,} GETs, {result['puts']:,} PUTs, {result['incrs']:,} INCRs, {result['unanswered']} without "
          f"an answer; writes lost: {result['lost']}, applied twice: {result['twice']}, wrong values: {result['wrong']}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=600, help="at most")
    parser.add_argument("--ways", default="kill,stop,handover")
    parser.add_argument("--stopped_s", type=float, default=5)
    parser.add_argument("--lease_ms", type=int, default=600)
    parser.add_argument("--pause_us", type=int, default=0, help="of each of the client's threads, after each answer")
    parser.add_argument("--memory", default="64M")
    parser.add_argument("--verbose", action="store_true", help="print each round")
    parser.add_argument("--explain_ms", type=float, default=float("inf"),
                        help="print what the servers logged of a round with a longer gap")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.build = os.path.abspath(options.build)
    options.ways = options.ways.split(",")
    options.groups, options.nodes, options.etcd = 1, len(NODES), 1
    return options


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="gannet-takeover-") as folder:
        result = measure(options, folder)
    show(result)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)
    if result["failed"]:
        print(result["failed"])
    return 0 if not result["failed"] and result["lost"] + result["twice"] + result["wrong"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
