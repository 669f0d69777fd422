#!/usr/bin/env python3
"""Makes the packages, and uses them as those do who install them.

    package_test.py --source DIR --build DIR

  1. lintian finds no error.
  2. dpkg installs them into an empty root, upgrades them there, removes and purges them. An edited
     configuration survives, and nothing stays behind that should not.
  3. What repeats --help is the help: man pages, completions, the configuration file.
  4. The server runs by the command of its unit, and tells its supervisor how it is.
  5. Programs find the library by CMake and by pkg-config. Its headers give no warning.
  6. Every command of docs/getting-started.md does what the page says.

Packages that these depend on are not in the root. Programs take them from the host.
"""

import argparse
import glob
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import getting_started
import program_files

PACKAGES = ["gannet-server", "gannet-tools", "libgannet[0-9]*", "libgannet-dev", "softverbs", "python3-gannet"]
CONFIGURATION = "etc/gannet/kvserver.conf"
UNIT = "usr/lib/systemd/system/kvserver.service"
PROXY_UNIT = "usr/lib/systemd/system/gannet-proxy.service"
# What a unit must have; and what `systemd-analyze security` may say of it at most, times 10.
SETTINGS = (("Type", "notify"), ("Restart", "on-failure"), ("RestartPreventExitStatus", "2"),
            ("LimitMEMLOCK", "infinity"), ("ProtectSystem", "strict"), ("NoNewPrivileges", "yes"),
            ("CapabilityBoundingSet", ""), ("WatchdogSec", "30s"))
EXPOSURE_MAX = 20
# What the installation of any package makes, and the user of the service.
OF_DPKG = re.compile(r"var/|etc/(passwd|group|shadow|gshadow)-?$|etc/\.pwd\.lock$")
FIXED_TIME = 60  # seconds until something that should happen at once counts as hung


def fail(what):
    sys.exit(f"FAILED: {what}")


def check(condition, what):
    if not condition:
        fail(what)


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    if done.returncode != 0:
        fail(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
    return done.stdout


class Root:
    """An empty folder for dpkg to install to. Scripts of packages run on the host, with DPKG_ROOT."""

    def __init__(self, path):
        self.path = path
        for folder in ("updates", "info", "triggers"):
            os.makedirs(f"{path}/var/lib/dpkg/{folder}")
        os.makedirs(f"{path}/var/log")
        open(f"{path}/var/lib/dpkg/status", "w", encoding="utf-8").close()
        os.makedirs(f"{path}/stand-in")
        if not shutil.which("systemd-sysusers"):
            with open(f"{path}/stand-in/systemd-sysusers", "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n")
            os.chmod(file.name, 0o755)

    def dpkg(self, *arguments):
        as_root = [] if os.getuid() == 0 else ["fakeroot"]
        path = f"{self.path}/stand-in:{os.environ['PATH']}:/usr/sbin:/sbin"
        return run(*as_root, "dpkg", f"--root={self.path}", f"--log={self.path}/var/log/dpkg.log",
                   "--force-depends", "--force-script-chrootless", "--force-confold", *arguments,
                   env=os.environ | {"PATH": path})

    def files(self):
        """All files but those of dpkg itself."""
        found = set()
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = os.path.relpath(f"{folder}/{name}", self.path)
                if not OF_DPKG.match(path) and not path.startswith("stand-in/"):
                    found.add(path)
        return found

    def read(self, path):
        with open(f"{self.path}/{path}", encoding="utf-8") as file:
            return file.read()


def make_packages(build, target):
    # Not as small as they could be: that takes seconds.
    shutil.rmtree(target, ignore_errors=True)
    run("cpack", "--config", f"{build}/CPackConfig.cmake", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip",
        "-B", target)
    shutil.rmtree(f"{target}/_CPack_Packages")


def made_packages(target):
    """The packages in a folder, in the order of PACKAGES."""
    debs = []
    for name in PACKAGES:
        found = glob.glob(f"{target}/{name}_*.deb")
        check(len(found) == 1, f"packages {name}: {found}")
        debs += found
    return debs


def check_control(deb, root):
    """The library's package says what programs that are linked with it depend on."""
    depends = run("dpkg-deb", "-f", deb[0], "Depends")
    for library in ("libabsl", "libc6 (>=", "libgoogle-glog", "libibverbs1 (>=", "librdmacm1 (>="):
        check(library in depends, f"gannet-server does not depend on {library}: {depends}")
    package = os.path.basename(deb[2]).split("_")[0]
    shlibs = root.read(f"var/lib/dpkg/info/{package}.shlibs").split()
    check(shlibs[:3] == ["libgannet", package.removeprefix("libgannet"), package], f"shlibs: {shlibs}")
    check(f"usr/lib/libgannet.so.{shlibs[1]}" in root.files(), "the soname that shlibs names")


# --- the server -----------------------------------------------------------------------------------


def settings_of(unit):
    settings = {}
    for line in unit.splitlines():
        name, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            settings.setdefault(name, []).append(value)
    return settings


def check_settings(root, unit, work):
    """Returns the unit's settings."""
    name = os.path.basename(unit)
    settings = settings_of(root.read(unit))
    for setting, value in SETTINGS:
        check(settings.get(setting) == [value], f"{name}: {setting} is {settings.get(setting)}")
    if shutil.which("systemd-analyze"):
        # With a program that the host has.
        with open(f"{work}/{name}", "w", encoding="utf-8") as file:
            file.write(re.sub(r"^ExecStart=.*", "ExecStart=/bin/true", root.read(unit), flags=re.MULTILINE))
        said = run("systemd-analyze", "verify", "--man=no", file.name)
        check(not said, f"systemd-analyze: {said}")
        run("systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={EXPOSURE_MAX}", file.name)
    return settings


def check_proxy_unit(root, work):
    settings = check_settings(root, PROXY_UNIT, work)
    check(settings["DynamicUser"] == ["yes"], "the proxy's unit has no user of its own")
    command = settings["ExecStart"][0].split()
    check(os.access(f"{root.path}{command[0]}", os.X_OK), f"the proxy's unit runs {command[0]}")


def check_unit(root, work):
    settings = check_settings(root, UNIT, work)
    users = root.read("usr/lib/sysusers.d/gannet-server.conf")
    check(f"\nu {settings['User'][0]} " in users, "sysusers.d does not make the unit's user")
    command = settings["ExecStart"][0]
    check(command == f"/usr/bin/kvserver --flagfile=/{CONFIGURATION}", f"the unit's command: {command}")
    return [re.sub(r"(^|=)/", rf"\1{root.path}/", word) for word in command.split()]


class Server:
    """The server by its unit's command, and its supervisor's end of the socket."""

    def __init__(self, command, work):
        self.supervisor = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.supervisor.bind(f"{work}/notify")
        self.supervisor.settimeout(FIXED_TIME)
        environment = os.environ | {"NOTIFY_SOCKET": f"{work}/notify", "WATCHDOG_USEC": "200000"}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            self.wait_for("READY=1\nSTATUS=serves on 127.0.0.1:")
            check(select.select([self.process.stdout], [], [], FIXED_TIME)[0], "the server prints nothing")
            self.address = self.process.stdout.readline().split()[1]
        except BaseException:
            self.process.kill()
            raise

    def wait_for(self, message):
        """Any number of other messages may come before."""
        while True:
            try:
                got = self.supervisor.recv(4096).decode()
            except TimeoutError:
                fail(f"the server did not say {message}")
            if got.startswith(message):
                return

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.wait_for("STOPPING=1")
        check(self.process.wait(FIXED_TIME) == 0, f"the server's exit code is {self.process.returncode}")


def configure(root):
    """As an administrator does. The port is any that is free."""
    text = root.read(CONFIGURATION)
    text = text.replace("\n--listen=127.0.0.1:7471\n", "\n--listen=127.0.0.1:0\n")
    text = text.replace("\n#--memory=1G\n", "\n--memory=64M\n").replace("\n#--device=auto\n", "\n--device=soft\n")
    check(text.count("\n--") == 3, "the configuration has other lines than it had")
    with open(f"{root.path}/{CONFIGURATION}", "w", encoding="utf-8") as file:
        file.write(text)
    return text


def check_server(root, command, programs, work):
    server = Server(command, work)
    try:
        for _ in range(3):
            server.wait_for("WATCHDOG=1")
        kvcli = [f"{root.path}/usr/bin/kvcli", "--device=soft", "--quiet", f"--server={server.address}"]
        run(*kvcli, "put", "color", "blue")
        check(run(*kvcli, "get", "color") == "blue", "the value")
        for program in programs:
            said = run(f"{root.path}/usr/bin/softverbs-run", program, server.address,
                       env=os.environ | {"LD_LIBRARY_PATH": f"{root.path}/usr/lib"})
            check("greeting = hello" in said, f"{program} said {said}")
        # Debian's own Python, which finds the package there without being told.
        python = ["/usr/bin/python3", "-B", "-c", PYTHON_PROGRAM, server.address]
        said = run(f"{root.path}/usr/bin/softverbs-run", *python,
                   env=os.environ | {"LD_LIBRARY_PATH": f"{root.path}/usr/lib",
                                     "PYTHONPATH": f"{root.path}/usr/lib/python3/dist-packages"})
        check("greeting = hello" in said, f"Python said {said}")
        server.stop()
    finally:
        server.process.kill()


# --- the library ----------------------------------------------------------------------------------

PYTHON_PROGRAM = """import sys, gannet
with gannet.Client(sys.argv[1]) as client:
    print("greeting =", client.get("greeting").decode())
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(consumer C CXX)
find_package(gannet REQUIRED)
add_executable(by_cmake {example})
target_link_libraries(by_cmake PRIVATE gannet::client)
add_executable(c_by_cmake {example_in_c})
target_link_libraries(c_by_cmake PRIVATE gannet::c)
"""


def build_programs(root, examples, work):
    example = f"{examples}/read_modify_write.cc"
    example_in_c = f"{examples}/in_c.c"
    os.mkdir(f"{work}/project")
    with open(f"{work}/project/CMakeLists.txt", "w", encoding="utf-8") as file:
        file.write(PROJECT.format(example=example, example_in_c=example_in_c))
    run("cmake", "-S", f"{work}/project", "-B", f"{work}/project/build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={root.path}/usr")
    run("cmake", "--build", f"{work}/project/build")
    def flags(package):
        environment = os.environ | {"PKG_CONFIG_PATH": f"{root.path}/usr/lib/pkgconfig"}
        return run("pkg-config", "--cflags", "--libs", package, env=environment).split()

    run("g++", "-std=c++20", "-O0", example, *flags("gannet"), "-o", f"{work}/by_pkg_config")
    run("gcc", "-std=c99", example_in_c, *flags("gannet-c"), "-o", f"{work}/c_by_pkg_config")
    return [f"{work}/project/build/{name}" for name in ("by_cmake", "c_by_cmake")] + [
        f"{work}/by_pkg_config", f"{work}/c_by_pkg_config"]


def check_headers(root, work):
    with open(f"{work}/headers.cc", "w", encoding="utf-8") as file:
        for header in sorted(glob.glob(f"{root.path}/usr/include/gannet/*.h")):
            file.write(f"#include <gannet/{os.path.basename(header)}>\n")
    warnings = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{root.path}/usr/include")
    for compiler in ("gcc", "clang"):
        run(compiler, "-std=c99", *warnings, "-x", "c", f"{root.path}/usr/include/gannet/gannet.h")
    for compiler in ("g++", "clang++"):
        run(compiler, "-std=c++20", *warnings, f"{work}/headers.cc")


# --- upgrade and removal --------------------------------------------------------------------------


def newer(deb, work):
    """A later version of the package, which lacks a file that this one has."""
    tree = f"{work}/newer"
    run("dpkg-deb", "-R", deb, tree)
    os.remove(glob.glob(f"{tree}/usr/share/doc/*/changelog.gz")[0])
    with open(f"{tree}/DEBIAN/control", encoding="utf-8") as file:
        control = re.sub(r"^Version: (.*)-1$", r"Version: \1-2", file.read(), flags=re.MULTILINE)
    with open(f"{tree}/DEBIAN/control", "w", encoding="utf-8") as file:
        file.write(control)
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "-b", tree, f"{work}/newer.deb")
    return f"{work}/newer.deb"


def check_upgrade_and_removal(root, debs, configuration, work):
    before = root.files()
    root.dpkg("-i", newer(debs[0], work))
    gone = before - root.files()
    check(gone == {"usr/share/doc/gannet-server/changelog.gz"}, f"gone with the upgrade: {gone}")
    check(root.files() < before, f"new with the upgrade: {root.files() - before}")
    check(root.read(CONFIGURATION) == configuration, "the upgrade changed the edited configuration")
    enabled = f"{root.path}/etc/systemd/system/multi-user.target.wants"
    os.makedirs(enabled)
    os.symlink("/" + UNIT, f"{enabled}/kvserver.service")
    names = [os.path.basename(deb).split("_")[0] for deb in debs]
    root.dpkg("--remove", *names)
    left = root.files() - {os.path.relpath(f"{enabled}/kvserver.service", root.path)}
    check(left == {CONFIGURATION}, f"left after removing: {left}")
    root.dpkg("--purge", *names)
    check(not root.files(), f"left after purging: {root.files()}")
    check(not os.path.exists(f"{root.path}/etc/gannet"), "purging left /etc/gannet")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", required=True)
    parser.add_argument("--build", required=True)
    parser.add_argument("--packages", required=True, help="the folder that has the packages")
    parser.add_argument("--make", action="store_true", help="make the packages there, and do nothing else")
    arguments = parser.parse_args()
    if arguments.make:
        make_packages(arguments.build, arguments.packages)
        return
    with tempfile.TemporaryDirectory() as work:
        debs = made_packages(arguments.packages)
        run(f"{arguments.source}/packaging/judge", *debs)
        root = Root(f"{work}/root")
        root.dpkg("-i", *debs)
        check_control(debs, root)
        for problem in program_files.problems(f"{root.path}/usr", root.read(CONFIGURATION)):
            fail(problem)
        shipped = root.read(CONFIGURATION)
        command = check_unit(root, work)
        check_proxy_unit(root, work)
        for problem in getting_started.problems(arguments.source, root.path, arguments.packages, f"{work}/walk"):
            fail(problem)
        with open(f"{root.path}/{CONFIGURATION}", "w", encoding="utf-8") as file:
            file.write(shipped)
        configuration = configure(root)
        check_headers(root, work)
        programs = build_programs(root, f"{arguments.source}/client/example", work)
        check_server(root, command, programs, work)
        check_upgrade_and_removal(root, debs, configuration, work)
    print("judged, installed, run, upgraded, removed")


if __name__ == "__main__":
    main()
