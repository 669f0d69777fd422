#!/usr/bin/env python3
"""Looks at a group as people do: /metrics, /readyz, /status.json and logs of its members, and kvcli.

    group_test.py --build DIR --source DIR

Fails if a member's role, epoch or lag is not shown, if dead members look as if they lived, if the alert rules ask for metrics of a group that
there are not, or if clients do not tell that a new primary has the same history.
"""

import argparse
import base64
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 4))
sys.path.insert(0, os.path.join(SOURCE, "tools", "cluster"))
import local_cluster  # noqa: E402

PATIENT_S = 120  # nothing depends on how long it takes


def free_port():
    return local_cluster.free_ports(1)[0]


def fetch(url, body=None):
    """Returns status and text."""
    try:
        with urllib.request.urlopen(url, body, timeout=PATIENT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def eventually(what, so):
    until = time.monotonic() + PATIENT_S
    while True:
        try:
            found = so()
        except OSError:
            found = None
        if found:
            return found
        assert time.monotonic() < until, f"in vain: {what}"
        time.sleep(0.05)


class Etcd:
    def __init__(self, home):
        self.url = f"http://127.0.0.1:{free_port()}"
        peers = f"http://127.0.0.1:{free_port()}"
        with open(f"{home}/etcd.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["etcd", f"--data-dir={home}/etcd", f"--listen-client-urls={self.url}", f"--advertise-client-urls={self.url}",
                 f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}"],
                stdout=log, stderr=log)
        eventually("etcd answers", lambda: fetch(f"{self.url}/health")[0] == 200)

    def put(self, key, value):
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in (("key", key), ("value", json.dumps(value)))}
        status, text = fetch(f"{self.url}/v3/kv/put", json.dumps(encoded).encode())
        assert status == 200, text


    def delete(self, key):
        status, text = fetch(f"{self.url}/v3/kv/deleterange", json.dumps({"key": base64.b64encode(key.encode()).decode()}).encode())
        assert status == 200, text


class Member:
    def __init__(self, build, home, etcd, name):
        self.name, self.program, self.etcd = name, f"{build}/bin/kvserver", etcd.url
        self.path = f"{home}/{name}.log"
        self.http = f"http://127.0.0.1:{free_port()}"
        self.address = f"127.0.0.1:{free_port()}"
        with open(self.path, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [f"{build}/bin/kvserver", "--device=soft", "--memory=64M", f"--listen={self.address}", "--cluster=c",
                 f"--etcd={etcd.url}", f"--name={name}", f"--http={self.http.removeprefix('http://')}"],
                stdout=log, stderr=log)

    def said(self):
        with open(self.path, encoding="utf-8") as log:
            return log.read()

    @property
    def labels(self):
        return f'cluster="c",group="g1",member="{self.name}"'

    def metric(self, name, more=""):
        """Of the group, as it is now. None: it is not shown."""
        return self.metrics().get(f"gannet_group_{name}{{{self.labels}{more}}}")

    def ready(self):
        return fetch(self.http + "/readyz")

    def seen(self):
        return json.loads(fetch(self.http + "/status.json")[1])["group"]

    def metrics(self):
        """Nothing while the server starts."""
        status, text = fetch(self.http + "/metrics")
        if status != 200:
            return {}
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
                for line in text.split("\n") if line and not line.startswith("#")}

    def role(self, role):
        return self.metrics().get(f'gannet_group_role{{{self.labels},role="{role}"}}') == 1

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait(20)


def kvcli(build, servers, *command):
    shown = subprocess.run([f"{build}/bin/kvcli", "--device=soft", f"--server={servers}", "--json", *command], check=True,
                           capture_output=True, text=True, timeout=PATIENT_S)
    return json.loads(shown.stdout.splitlines()[0])


def check_asked(member):
    """What health checks of containers see."""

    def ask(address):
        return subprocess.run([member.program, f"--ask_ready={address}"], check=False, capture_output=True, text=True, timeout=60)

    ready = ask(member.http.removeprefix("http://"))
    assert ready.returncode == 0, ready.stderr
    for address, said in ((f"127.0.0.1:{free_port()}", "/readyz: "), (member.etcd.removeprefix("http://"), "/readyz: 404")):
        done = ask(address)
        assert done.returncode == 1 and said in done.stderr, (done.returncode, done.stderr)


def check_first_primary(first, second):
    eventually("n1 leads", lambda: first.role("primary"))
    eventually("n2 follows", lambda: second.role("backup"))
    eventually("n1 counts n2", lambda: first.metric("members_in_sync") == 2)
    assert first.metric("epoch") == 1 and first.metric("backup_in_sync", ',backup="n2"') == 1, first.metrics()
    assert first.metric("members") == second.metric("members") == 2, first.metrics()
    assert eventually("n1 has a lease", lambda: first.metric("lease_seconds") > 0)
    for member in (first, second):
        assert eventually(f"{member.name} is ready", lambda it=member: it.ready()[0] == 200), member.said()
        eventually(f"{member.name} says READY", lambda it=member: f"READY {it.address} " in it.said())
        check_asked(member)
    seen = second.seen()
    assert seen["role"] == "backup" and seen["primary"] == "n1" and seen["epoch"] == 1, seen


def check_lag(build, servers, first, second):
    """What is written reaches the backup, and the primary tells that it has none to apply any more."""
    kvcli(build, servers, "put", "key", "value")
    end = first.metric("end_lsn")
    eventually("n2 applies all", lambda: second.metric("applied_lsn") >= end)
    eventually("n1 hears that", lambda: first.metric("backup_lag_bytes", ',backup="n2"') == 0)


def look_at(build, etcd):
    """What kvcli cluster status --check says: its exit code, and what it shows."""
    looked = subprocess.run([f"{build}/bin/kvcli", "--device=soft", "--json", "cluster", "status", "--check", f"--etcd={etcd.url}",
                             "--cluster=c"], check=False, capture_output=True, text=True, timeout=90)
    return looked.returncode, json.loads(looked.stdout)


def check_whole(build, etcd):
    """Members are asked, so they tell what etcd does not know."""
    code, shown = look_at(build, etcd)
    members = {it["name"]: it for it in shown["groups"][0]["members"]}
    assert code == 0 and shown["health"] == "ok" and shown["groups"][0]["problems"] == [], shown
    assert [members[name]["state"] for name in ("n1", "n2")] == ["in_sync", "in_sync"], shown
    assert all(it["uptime_s"] is not None for it in members.values()), shown


def check_silent(build, etcd, stopped):
    """A process that hangs is neither dead nor well."""
    code, status = look_at(build, etcd)
    states = {it["name"]: it["state"] for it in status["groups"][0]["members"]}
    assert code == 1 and states[stopped.name] == "silent", status


def check_dead_backup(build, etcd, servers, alive, dead):
    """The group serves, with a copy less. Whoever looks is told, wherever it looks."""
    eventually(f"{dead.name} is removed", lambda: alive.metric("backups_removed_total") == 1 and alive.metric("members_in_sync") == 1)
    assert alive.metric("backup_linked", f',backup="{dead.name}"') == 0, alive.metrics()
    shown = {it["node"]: it for it in alive.seen()["backups"]}
    assert not shown[dead.name]["linked"] and not shown[dead.name]["in_sync"], shown
    code, status = look_at(build, etcd)
    states = {it["name"]: it["state"] for it in status["groups"][0]["members"]}
    assert code == 1 and status["health"] == "degraded" and states == {alive.name: "in_sync", dead.name: "dead"}, status
    looked = subprocess.run([f"{build}/bin/kvcli", "--device=soft", f"--server={servers}", "--json", "doctor"], check=False,
                            capture_output=True, text=True, timeout=90)
    found = [json.loads(line) for line in looked.stdout.splitlines()]
    said = {it["text"].partition(": ")[0]: it["severity"] for it in found if it["check"] == "member"}
    assert looked.returncode == 1 and said == {alive.address: "ok", dead.address: "warning"}, found


def check_all_dead(build, etcd):
    """etcd still says who was primary, and in sync."""
    code, status = look_at(build, etcd)
    group = status["groups"][0]
    assert code == 3 and status["health"] == "down" and group["in_sync"], status
    assert all(it["state"] == "dead" for it in group["members"]) and "does not serve" in group["problems"][0], status


def check_lost_entry(build, etcd):
    """etcd's map names a group whose entry is gone."""
    etcd.delete("/gannet/c/groups/g1")
    code, status = look_at(build, etcd)
    assert code == 3 and status["health"] == "down", status
    assert [(it["name"], it["epoch"]) for it in status["groups"]] == [("g1", None)], status
    assert {it["name"] for it in status["others"]} == {"n1", "n2"}, status


def check_doctor(build, servers, first):
    looked = subprocess.run([f"{build}/bin/kvcli", "--device=soft", f"--server={servers}", "--json", "doctor"], check=False,
                            capture_output=True, text=True, timeout=PATIENT_S)
    found = [json.loads(line) for line in looked.stdout.splitlines()]
    assert len([it for it in found if it["check"] == "member" and it["severity"] == "ok"]) == 2, found
    assert [it["text"] for it in found if it["check"] == "primary"] == [f"{first.address}, of epoch 1"], found


def start_load(build, home, servers, first):
    """Starts kvload, and returns when it has loaded its records and goes on for seconds."""
    load = subprocess.Popen([f"{build}/bin/kvload", "--device=soft", f"--server={servers}", "--workload=a", "--records=500",
                             "--operations=4000", "--rate=500", f"--json={home}/load.json"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    eventually("kvload writes", lambda: first.metrics()['gannet_requests_total{opcode="put"}'] > 600)
    return load


def check_load(load, home):
    """A run goes on at the new primary, and says so. Calls whose deadline was over meanwhile may be errors."""
    said = load.communicate(timeout=PATIENT_S)[0]
    with open(f"{home}/load.json", encoding="utf-8") as file:
        report = json.load(file)
    assert report["cut_short"] is None and report["fail_overs"] == 1 and report["wrong_values"] == 0, said
    assert "fail-overs to another primary: 1" in said and "lost its data" not in said, said


def check_names(source, metrics):
    with open(f"{source}/packaging/prometheus/gannet.rules.yml", encoding="utf-8") as file:
        wanted = set(re.findall(r"\bgannet_group_\w+", " ".join(re.findall(r"expr: (.*)", file.read()))))
    known = {name.partition("{")[0] for name in metrics}
    assert wanted and not wanted - known, f"no such metrics: {wanted - known}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--source", required=True)
    given = parser.parse_args()
    started = []
    with tempfile.TemporaryDirectory(prefix="gannet-group-", dir="/tmp") as home:
        try:
            etcd = Etcd(home)
            started.append(etcd.process)
            etcd.put("/gannet/c/config", {"format": 1, "groups": ["g1"], "partitions": [0] * 1024})
            etcd.put("/gannet/c/groups/g1", {"history": "00000000000000ff", "epoch": 0, "primary": None, "in_sync": [],
                                             "members": ["n1", "n2"], "lease_ms": 2000, "min_copies": 1, "ring_bytes": 16777216})
            first = Member(given.build, home, etcd, "n1")
            started.append(first.process)
            eventually("n1 leads", lambda: first.role("primary"))
            second = Member(given.build, home, etcd, "n2")
            started.append(second.process)
            check_first_primary(first, second)
            servers = f"cluster:{first.address},{second.address}"
            check_lag(given.build, servers, first, second)
            check_names(given.source, first.metrics())
            before = kvcli(given.build, servers, "info")
            # A client that begins with the backup is sent on. That is no fault to warn of.
            assert kvcli(given.build, f"cluster:{second.address},{first.address}", "get", "key")["value"] == "value"
            assert "refused" not in second.said(), second.said()

            check_doctor(given.build, servers, first)
            check_whole(given.build, etcd)
            load = start_load(given.build, home, servers, first)
            started.append(load)
            first.end()
            eventually("n2 takes over", lambda: second.role("primary"))
            assert second.metric("epoch") == 2, second.metrics()
            after = kvcli(given.build, servers, "info")
            assert after["history"] == before["history"] == "00000000000000ff", after
            assert (before["epoch"], after["epoch"]) == (1, 2), (before, after)
            assert (before["address"], after["address"]) == (first.address, second.address), (before, after)
            assert after["incarnation"] != before["incarnation"], after
            check_load(load, home)
            for line in ("becomes a backup, in sync, of n1, primary of epoch 1", "leaves the primary of epoch 1: no beacon for ",
                         "becomes primary of epoch 2"):
                assert second.said().count(line) == 1, f"{line}: {second.said()}"
            first = Member(given.build, home, etcd, "n1")
            started.append(first.process)
            eventually("n1 is in sync again", lambda: second.metric("members_in_sync") == 2)
            first.process.send_signal(signal.SIGSTOP)
            check_silent(given.build, etcd, first)
            first.end()
            check_dead_backup(given.build, etcd, f"cluster:{first.address},{second.address}", second, first)
            second.end()
            check_all_dead(given.build, etcd)
            check_lost_entry(given.build, etcd)
        except BaseException:
            for name in ("n1", "n2"):
                if os.path.exists(f"{home}/{name}.log"):
                    with open(f"{home}/{name}.log", encoding="utf-8") as log:
                        print(f"--- {name}\n{log.read()}")
            raise
        finally:
            for process in started:
                if process.poll() is None:
                    process.kill()
                    process.wait(20)


if __name__ == "__main__":
    main()
