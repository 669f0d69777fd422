#!/usr/bin/env python3
"""The previous release's programs beside today's: neighbours.py --build DIR --previous DIR [PART...]

Each DIR has bin/ and lib/softverbs; ./dev test upgrade makes them. lib/softverbs is today's in both, as one machine has one device.

  clients   kvcli and kvload of each release use a server of the other
  alone     a user upgrades a server with --memory_file, and one with --data: upgrade-check while it serves, stop, start, and back again
  rolling   a group of three is upgraded under load: the backups, then the primary, each by SIGTERM
  mixed     one of three is new: it leads the old ones, and dies; an old one leads it

Clients of both releases run meanwhile and check what they read. Fails if a call fails, or if a write is lost, applied twice or
wrong. The longest waits are printed, and are no reason to fail: a busy machine makes them longer.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [f"{ROOT}/tools/cluster", f"{ROOT}/tools/bench", f"{ROOT}/tests/fixtures"]
import local_cluster  # noqa: E402
import stored  # noqa: E402
import takeover  # noqa: E402

MEMBERS = ("n1", "n2", "n3")
RATE = 2000  # operations a second of each kvload: a machine of two cores has time for the servers, too
AIM_MS = 1000
LAYOUT_VERSION_AT = (8, 4096 + 512 + 8)  # in a memory file: of the superblock, and of its copy
STOP_S = 60  # only a hang takes so long


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


# --- clients --------------------------------------------------------------------------------------


class Load:
    """A kvload, which checks all that it reads, until it is told to end."""

    def __init__(self, build, address):
        self.build = build
        self.out = tempfile.TemporaryFile("w+")
        self.report = tempfile.NamedTemporaryFile("r")
        common = [f"{build}/bin/kvload", "--device=soft", f"--server={address}", "--records=1000", "--deadline_ms=30000"]
        subprocess.run([*common, "--phase=load"], check=True, stdout=self.out, stderr=self.out)
        self.process = subprocess.Popen([*common, "--phase=run", "--workload=a", f"--rate={RATE}", "--seconds=3600",
                                         "--on_server_loss=wait", f"--json={self.report.name}"],
                                        stdout=self.out, stderr=self.out)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait()
        self.out.seek(0)
        said = self.out.read()
        check(code == 130, f"kvload of {self.build}: {code}\n{said}")
        report = json.load(self.report)
        print(f"  kvload: {report['operations']} operations, errors {report['errors']}, wrong values {report['wrong_values']}", flush=True)
        check(not report["errors"] and report["wrong_values"] == 0, said)


@contextlib.contextmanager
def clients(options, address):
    """Of both releases. Gives the new one's, which measures waits."""
    load = Load(options.previous, address)
    client = takeover.Client(options.build, address, pause_us=200)
    client.await_answers()
    client.gaps()
    yield client
    counts = client.end()
    print(f"  {counts}", flush=True)
    bad = {name: counts[name] for name in ("unanswered", "lost", "twice", "wrong") if counts[name] != 0}
    check(not bad, bad)
    load.end()


def check_values(build, address, keys):
    got = stored.kvcli(build, address, "--json", "mget", *keys).splitlines()
    values = {it["key"]: it.get("value") for it in map(json.loads, got) if "key" in it}
    wrong = [key for key in keys if values.get(key) != stored.value_of(key)]
    check(not wrong, f"wrong values of {wrong}")


def test_clients(options):
    keys = [f"key-{i}" for i in range(100)]
    for mine, other in ((options.previous, options.build), (options.build, options.previous)):
        with stored.server(other, "--memory=64M") as (_, address):
            stored.put(mine, address, keys)
            check_values(mine, address, keys)
            done = subprocess.run([f"{mine}/bin/kvload", "--device=soft", f"--server={address}", "--records=1000", "--workload=a",
                                   "--operations=100000", "--threads=2"], check=False, capture_output=True, text=True)
            check(done.returncode == 0, f"kvload of {mine} with a server of {other}: {done.stdout}{done.stderr}")


# --- a server alone -------------------------------------------------------------------------------


def upgrade_check(options, path):
    """kvcli upgrade-check, as docs/versions.md has it. Returns its exit code and its answer."""
    done = subprocess.run([f"{options.build}/bin/kvcli", "--json", "upgrade-check", path, f"--kvserver={options.build}/bin/kvserver"],
                          check=False, capture_output=True, text=True)
    check(done.returncode in (0, 1) and done.stdout, f"upgrade-check {path}: {done}")
    return done.returncode, json.loads(done.stdout)


def upgrade_alone(options, path, *flags, snapshot=False):
    keys = [f"kept-{i}" for i in range(200)]
    address = f"127.0.0.1:{local_cluster.free_ports(1)[0]}"
    with stored.server(options.previous, *flags, f"--listen={address}") as (process, _):
        stored.put(options.previous, address, keys[:100])
        if snapshot:
            stored.kvcli(options.previous, address, "snapshot")
        stored.put(options.previous, address, keys[100:])
        code, answer = upgrade_check(options, path)
        if code != 0:
            print(f"  {path} is not taken over, says upgrade-check: {answer['why_not']}")
            check_values(options.previous, address, keys)  # which serves on
            return False
        check_values(options.previous, address, keys)
        stored.stop(process)
    with stored.server(options.build, *flags, f"--listen={address}") as (process, _):
        check_values(options.build, address, keys)
        check_values(options.previous, address, keys)
        stored.put(options.build, address, ["new-200"])
        stored.stop(process)
    # The way back: what the new version writes beside (the time) does not disturb the previous one.
    for build in (options.previous, options.build):
        with stored.server(build, *flags, f"--listen={address}"):
            check_values(build, address, [*keys, "new-200"])
    return True


def refuse_other_layout(options, path):
    """upgrade_test.py tests what the server does then."""
    with open(path, "r+b") as file:
        for at in LAYOUT_VERSION_AT:
            file.seek(at)
            file.write((4711).to_bytes(4, "little"))
    code, answer = upgrade_check(options, path)
    check(code == 1 and "layout has version 4711" in answer["why_not"], answer)
    print(f"  another layout is not taken over, says upgrade-check: {answer['why_not']}")


def test_alone(options):
    with tempfile.TemporaryDirectory(prefix="gannet-upgrade-", dir="/dev/shm") as folder:
        memory = ("--memory=16M", f"--memory_file={folder}/memory")
        upgrade_alone(options, f"{folder}/memory", *memory)
        refuse_other_layout(options, f"{folder}/memory")
        os.mkdir(f"{folder}/data", 0o700)
        check(upgrade_alone(options, f"{folder}/data", "--memory=16M", f"--data={folder}/data", snapshot=True),
              "the new version reads a directory of --data")


# --- a group --------------------------------------------------------------------------------------


class MixedCluster(local_cluster.LocalCluster):
    """A cluster of the previous release, whose members can be upgraded."""

    def __init__(self, options, folder):
        super().__init__(options, folder)
        self.new = set()

    def build_of(self, name):
        return self.options.build if name in self.new else self.options.previous

    def flags_of(self, name):
        return super().flags_of(name) if name in self.new else []  # the previous release does not know them

    def upgrade(self, name):
        process = self.processes[name]
        process.terminate()
        process.wait(STOP_S)
        self.new.add(name)
        self.start_again(name)
        self.await_in_sync(MEMBERS)


@contextlib.contextmanager
def group(options):
    """A group of the previous release, and clients: the cluster, and what does a step and prints its longest waits."""
    with tempfile.TemporaryDirectory(prefix="gannet-upgrade-") as folder:
        cluster = MixedCluster(options, folder)
        try:
            cluster.start_etcd()
            cluster.start_servers()
            with clients(options, cluster.endpoint()) as client:

                def step(what, action):
                    action()
                    client.await_answers()
                    waits = client.gaps()
                    note = "" if max(waits.values()) <= AIM_MS else f": more than {AIM_MS} ms"
                    print(f"  {what:<44}" + " ".join(f"{kind} {ms:7.1f} ms" for kind, ms in waits.items()) + note, flush=True)

                step("all old, nothing done", lambda: None)
                yield cluster, step
        except local_cluster.Failed as failure:
            print(cluster.logs())
            sys.exit(f"FAILED: {failure}")
        finally:
            cluster.stop()


def test_rolling(options):
    with group(options) as (cluster, step):
        for _ in MEMBERS:
            primary = cluster.primary()  # on a busy machine another one may have taken over
            name = next((it for it in MEMBERS if it not in cluster.new and it != primary), primary)
            what = "the primary" if name == primary else "a backup"
            step(f"upgrades {name}, {what}", lambda name=name: cluster.upgrade(name))
        check(cluster.new == set(MEMBERS), f"only {cluster.new} are new")


def test_mixed(options):
    with group(options) as (cluster, step):
        new = next(it for it in MEMBERS if it != cluster.primary())
        step(f"upgrades {new}, a backup", lambda: cluster.upgrade(new))
        step(f"{new} leads two old ones", lambda: cluster.hand_over(local_cluster.GROUP, new, STOP_S))

        def die():
            if cluster.primary() != new:  # as above
                cluster.hand_over(local_cluster.GROUP, new, STOP_S)
            cluster.processes[new].kill()
            cluster.processes[new].wait()
            cluster.start_again(new)
            cluster.await_in_sync(MEMBERS)

        step(f"{new} dies (kill -9), and joins an old one", die)


PARTS = {"clients": test_clients, "alone": test_alone, "rolling": test_rolling, "mixed": test_mixed}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--previous", required=True)
    parser.add_argument("--lease_ms", type=int, default=600, help="of the primary; kvcli cluster init has this default, too")
    parser.add_argument("parts", nargs="*", metavar="PART")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"{part} is none of {', '.join(PARTS)}")
    options.build, options.previous = os.path.abspath(options.build), os.path.abspath(options.previous)
    options.groups, options.nodes, options.etcd, options.memory = 1, len(MEMBERS), 1, "64M"
    if shutil.which("etcd") is None:
        sys.exit("etcd is missing: ./dev deps test installs it")
    for what, build in (("previous", options.previous), ("today's", options.build)):
        version = subprocess.run([f"{build}/bin/kvserver", "--version"], check=True, capture_output=True, text=True).stdout
        print(f"{what}: {version.strip()}")
    for part in options.parts or PARTS:
        print(f"{part}:", flush=True)
        PARTS[part](options)
    print("all parts passed")


if __name__ == "__main__":
    main()
