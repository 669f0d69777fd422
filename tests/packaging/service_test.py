#!/usr/bin/env python3
"""The packaged service under the systemd of a Debian of its own (booted.py): installs the packages there with dpkg,
configures the service as an administrator does, and sees what each mode keeps when the service is restarted, killed
(kill -9), reloaded, upgraded, removed, installed again and purged.

docs/packages.md says what this test expects.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile

import booted
import package_test

CONFIGURATION = "/etc/gannet/kvserver.conf"
DATA = "/var/lib/gannet/data"
LOG = "/var/log/gannet/kvserver.log"
KEYS = "/etc/gannet/kvserver.keys"
# What an administrator does with a line of the shipped configuration: takes the # away.
MEMORY_FILE = "--memory_file=/dev/shm/gannet"
SKIPPED = 77


class Service:
    """The service in the booted system, and kvcli as its user."""

    def __init__(self, system):
        self.system = system
        self.run = system.run
        self.shipped = None  # the configuration

    def install(self, *debs):
        """The libraries are this machine's."""
        self.run("dpkg", "--force-depends", "--install", *debs)
        self.shipped = self.shipped or self.read(CONFIGURATION)

    def read(self, path):
        return self.run("cat", path).stdout

    def exists(self, path):
        return self.run("test", "-e", path, check=False).returncode == 0

    def write(self, path, text):
        self.run("tee", path, input=text)

    def kvcli(self, *arguments, check=True):
        done = self.run("runuser", "-u", "gannet", "--", "kvcli", "--quiet", "--deadline_ms=30000", *arguments, check=check)
        return done.stdout if check else done.returncode

    def property(self, name):
        return self.run("systemctl", "show", "--value", f"--property={name}", "kvserver").stdout.strip()

    def configure(self, *settings):
        """Takes the # away from lines of the configuration that was shipped, and adds what is none of its lines."""
        text = self.shipped
        for setting in ("--memory=64M", *settings):
            name = setting.partition("=")[0]
            if f"\n#{setting}\n" in text:
                text = text.replace(f"\n#{setting}\n", f"\n{setting}\n")
            else:
                text = re.sub(rf"^#{name}=.*$", setting, text, flags=re.MULTILINE)
            package_test.check(f"\n{setting}\n" in text, f"kvserver.conf has no line for {setting}")
        self.write(CONFIGURATION, text)

    def systemctl(self, what, unit="kvserver"):
        try:
            self.run("systemctl", what, unit)
        except RuntimeError as error:
            package_test.fail(f"{error}\n{self.log(unit)}")

    def kill(self):
        """kill -9, and waits until systemd has started the service anew."""
        killed = self.property("MainPID")
        self.run("kill", "-9", killed)
        self.system.wait_for("the service after kill -9", lambda: self.property("MainPID") not in ("0", killed)
                             and self.property("ActiveState") == "active")

    def log(self, unit="kvserver"):
        return self.run("journalctl", "--no-pager", f"--unit={unit}", "--lines=20").stdout

    def put(self, key, value="kept"):
        self.kvcli("put", key, value)

    def has(self, key):
        code = self.kvcli("get", key, check=False)
        package_test.check(code in (0, 1), f"kvcli get {key}: exit code {code}\n{self.log()}")
        return code == 0

    def expect(self, what, **keys):
        for key, there in keys.items():
            package_test.check(self.has(key) == there, f"{what}: {key} is {'not ' if there else ''}there\n{self.log()}")


# --- each mode ------------------------------------------------------------------------------------


def check_plain(service):
    """Nothing is kept; and a reload, of which there is nothing to do, does not end the server."""
    service.configure()
    service.systemctl("start")
    service.put("one")
    before = service.property("MainPID")
    service.systemctl("reload")
    service.expect("plain, reload", one=True)
    package_test.check(service.property("MainPID") == before, "a reload started the server anew")
    service.systemctl("restart")
    service.expect("plain, restart", one=False)
    service.put("two")
    service.kill()
    service.expect("plain, kill -9", two=False)


def check_kept(service, mode, *settings):
    service.configure(*settings)
    service.systemctl("restart")
    service.put("one")
    service.systemctl("restart")
    service.expect(f"{mode}, restart", one=True)
    service.put("two")
    service.kill()
    service.expect(f"{mode}, kill -9", one=True, two=True)
    service.systemctl("stop")
    service.systemctl("start")
    service.systemctl("reload")
    service.expect(f"{mode}, stop, start and reload", one=True, two=True)


def check_memory_file(service):
    check_kept(service, "memory file", MEMORY_FILE)
    service.systemctl("stop")
    service.run("rm", "/dev/shm/gannet")  # fails if the service's end removed it


def check_data(service):
    # always, so that kill -9 takes nothing.
    check_kept(service, "--data", f"--data={DATA}", "--sync=always")
    for path in ("/var/lib/gannet", DATA):
        said = service.run("stat", "--format=%U %a", path).stdout.strip()
        package_test.check(said == "gannet 700", f"{path}: {said}")


def check_log_file(service):
    """What logrotate does: renames the log, and reloads the service."""
    service.configure(f"--log_file={LOG}")
    service.systemctl("restart")
    package_test.check("without --auth_file" in service.read(LOG), "the log's lines are not in the file")
    service.run("mv", LOG, f"{LOG}.1")
    service.systemctl("reload")

    def written():
        service.kvcli("ping")  # whose connection is a line
        return service.exists(LOG) and service.read(LOG)

    service.system.wait_for("a line in the new log", written)


# As docs/packages.md says. The user is the server's, as softverbs connects no others.
PROXY_KEYS = """[Service]
LoadCredential=keys:/etc/gannet/proxy.keys
Environment=GANNET_AUTH_FILE=%d/keys
DynamicUser=no
User=gannet
"""
ASK_PROXY = """import socket
with socket.create_connection(("127.0.0.1", 11211)) as proxy:
    proxy.sendall(b"set color 0 0 4\\r\\nblue\\r\\nget color\\r\\nquit\\r\\n")
    print(proxy.makefile().read().split())
"""


def check_keys(service):
    """The server has the keys of its file, and gannet-proxy the one of a file that its user cannot read."""
    for path, owner in ((KEYS, "gannet:"), ("/etc/gannet/proxy.keys", "root:")):
        service.write(path, "")
        service.run("chown", owner, path)
        service.run("chmod", "600", path)
    key = service.kvcli("genkey")
    service.write(KEYS, key)
    service.write("/etc/gannet/proxy.keys", key)
    service.configure(f"--auth_file={KEYS}")
    service.systemctl("restart")
    package_test.check(service.kvcli("ping", check=False) == 3, "a client without a key got in")
    service.run("mkdir", "-p", "/run/systemd/system/gannet-proxy.service.d")
    service.write("/run/systemd/system/gannet-proxy.service.d/keys.conf", PROXY_KEYS)
    service.run("systemctl", "daemon-reload")
    service.systemctl("start", "gannet-proxy")
    said = service.run("python3", "-c", ASK_PROXY).stdout.strip()
    package_test.check(said == "['STORED', 'VALUE', 'color', '0', '4', 'blue', 'END']", f"the proxy said {said}")
    service.run("systemctl", "stop", "gannet-proxy")


# --- the package ----------------------------------------------------------------------------------


def check_package(service, newer):
    """An upgrade restarts nothing. What was stored outlives removing and purging; the log and the configuration do not
    outlive purging."""
    service.configure(f"--data={DATA}", f"--log_file={LOG}")
    service.systemctl("restart")
    service.put("one")
    before = service.property("MainPID")
    service.install(newer)
    package_test.check(service.property("MainPID") == before, "the upgrade started the server anew")
    service.expect("upgrade", one=True)
    service.run("dpkg", "--remove", "gannet-server")
    package_test.check(not service.exists(f"/proc/{before}"), "removing did not stop the server")
    service.install(newer)
    package_test.check(service.property("ActiveState") == "inactive", "installing again started the service")
    service.systemctl("start")
    service.expect("remove and install", one=True)
    service.run("dpkg", "--purge", "gannet-server")
    for gone in (CONFIGURATION, os.path.dirname(LOG)):
        package_test.check(not service.exists(gone), f"purging left {gone}")
    service.install(newer)
    service.configure(f"--data={DATA}")
    service.systemctl("start")
    service.expect("purge and install", one=True)
    service.systemctl("stop")
    service.run("find", DATA, "-mindepth", "1", "-delete")
    service.run("dpkg", "--purge", "gannet-server")
    package_test.check(not service.exists("/var/lib/gannet"), "purging left a folder without items")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", required=True, help="the folder that has the packages")
    arguments = parser.parse_args()
    if reason := booted.unavailable():
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    booted.enter_namespaces()
    with tempfile.TemporaryDirectory() as shared:
        os.chmod(shared, 0o755)
        debs = [shutil.copy(deb, shared) for deb in package_test.made_packages(arguments.packages)]
        newer = package_test.newer(debs[0], shared)
        inside = [deb.replace(shared, "/run/shared") for deb in debs[:3] + debs[4:5]]
        with booted.Booted(shared) as system:
            service = Service(system)
            service.install(*inside)
            package_test.check(service.property("ActiveState") == "inactive", "installing started the service")
            check_plain(service)
            check_memory_file(service)
            check_data(service)
            check_log_file(service)
            check_keys(service)
            check_package(service, newer.replace(shared, "/run/shared"))
    print("installed, started, restarted, killed, reloaded, upgraded, removed, purged")


if __name__ == "__main__":
    main()
