#!/usr/bin/env python3
"""Makes the wheel, and uses it as those do who have nothing else.

    wheel_test.py --source DIR --build DIR [--wheel FILE]     --wheel: this one, which was made of that build

  1. auditwheel says that it fits every Linux with this machine's glibc, and what it has is complete.
  2. pip installs it into an empty virtual environment, without a network.
  3. `python -m gannet.server` starts a server, `gannet.Client` and `kvcli` use it: none of them maps a library that is
     neither the wheel's, nor Python's, nor one that every Linux has. The machine's own copies are hidden from them.
  4. The wheel's servers are a group, with the machine's etcd, and a client goes on with the next primary.
  5. What goes wrong is said by the program that it went wrong in.
"""

import argparse
import contextlib
import email
import glob
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tools", "cluster"))
import local_cluster  # noqa: E402

START_SECONDS = 120  # until something that should happen at once counts as hung
# What every Linux of a manylinux wheel has.
OF_EVERY_LINUX = re.compile(r"(ld-linux-x86-64|libc|libdl|libgcc_s|libm|libpthread|libresolv|librt|libstdc\+\+|libutil|libz)[.-]")
# Python itself may need the machine's copies of these.
OF_PYTHON = ("libcrypto", "libffi", "liblzma", "libreadline", "libtinfo")
VERBS = ("libibverbs", "librdmacm")


def fail(what):
    sys.exit(f"FAILED: {what}")


def check(condition, what):
    if not condition:
        fail(what)


def run(*command, code=0, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          stdin=subprocess.DEVNULL, **options)
    if done.returncode != code:
        fail(f"{' '.join(command)}: exit code {done.returncode}, not {code}\n{done.stdout[-4000:]}")
    return done.stdout


# --- the file ---------------------------------------------------------------------------------------


def check_verdict(wheel, tools):
    """auditwheel says that the file keeps what its name promises. It finds no more missing than the verbs libraries, in
    whose place softverbs is in the wheel, and libnl, which those need."""
    platform = re.search(r"-cp39-abi3-(manylinux_2_\d+_x86_64)\.whl$", wheel)
    check(platform, f"the name of {wheel}")
    said = json.loads(run(f"{tools}/auditwheel", "show", "--json", wheel))
    check(said["sym_tag"] == platform[1], f"auditwheel says {said['sym_tag']} of {wheel}")
    missing = {name.split(".")[0] for name in said["external_libs"]}
    check(missing <= {*VERBS, "libnl-3", "libnl-route-3"}, f"{wheel} lacks {missing}")


def check_contents(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
        info = next(name.split("/")[0] for name in names if ".dist-info/" in name)
        about = email.message_from_bytes(file.read(f"{info}/METADATA"))
    for name in ("gannet/py.typed", "gannet/_capi.abi3.so", "gannet/lib/softverbs/libibverbs.so.1", f"{info}/licenses/LICENSE"):
        check(name in names, f"the wheel lacks {name}")
    check((about["Requires-Python"], about.get_all("Requires-Dist")) ==
          (">=3.9", ["cffi>=1.15", 'xxhash>=3.0; extra == "connectors"']), f"METADATA: {about}")
    added = [os.path.basename(name) for name in names if name.startswith("gannet.libs/") and ".so" in name]
    check(any(name.startswith("libabsl_base-") for name in added), f"no abseil among {added}")
    for name in added:
        check(not name.startswith(VERBS), f"{name} is in the wheel. Only the machine's own fits its drivers")
    check(any(name.startswith(f"{info}/licenses/libabsl") for name in names), "no license of abseil")
    return added


# --- the machine's libraries are hidden -------------------------------------------------------------


def hidden_libraries(added):
    """The machine's files of what was added to the wheel, and of the verbs libraries."""
    stems = {re.sub(r"-[0-9a-f]{8}\..*", "", name) for name in added} - set(OF_PYTHON) | set(VERBS)
    folders = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/usr/local/lib")
    found = (os.path.realpath(path) for folder in folders for stem in stems for path in glob.glob(f"{folder}/{stem}.so*"))
    return sorted(set(found))


def run_hidden(added, *arguments):
    """Runs this program where the machine's libraries are empty files: to load one is an error."""
    files = hidden_libraries(added)
    check(any("libibverbs" in path for path in files), f"no libibverbs to hide among {files}")
    script = 'set -e; while [ "$1" != -- ]; do mount --bind /dev/null "$1"; shift; done; shift; exec "$@"'
    user = [] if os.getuid() == 0 else ["--map-root-user"]
    command = ("unshare", *user, "--mount", "sh", "-c", script, "sh", *files, "--", sys.executable, "-B", __file__, *arguments)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
    check(done.returncode == 0, f"where {len(files)} libraries of the machine are hidden: exit code {done.returncode}")


# --- use --------------------------------------------------------------------------------------------


class Environment:
    """A virtual environment with the wheel, and programs in it, which see no variables of this process."""

    def __init__(self, path):
        self.path = path
        self.variables = {"PATH": f"{path}/bin:/usr/bin:/bin", "HOME": path}

    def run(self, *command, code=0):
        return run(f"{self.path}/bin/{command[0]}", *command[1:], code=code, env=self.variables)

    @contextlib.contextmanager
    def server(self, *flags):
        process = subprocess.Popen([f"{self.path}/bin/python", "-m", "gannet.server", "--listen=127.0.0.1:0", "--memory=64M",
                                    "--busy_poll_us=0", *flags], env=self.variables, stdout=subprocess.PIPE, text=True)
        try:
            check(select.select([process.stdout], [], [], START_SECONDS)[0], "the server does not start")
            ready = process.stdout.readline().split()
            check(ready[:1] == ["READY"] and "kind=softverbs" in ready, f"the server says {ready}")
            yield process, ready[1]
            process.send_signal(signal.SIGTERM)
            check(process.wait(START_SECONDS) == 0, f"the server ends with {process.returncode}")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def libraries_in(maps):
    return {line.split(maxsplit=5)[5].strip() for line in maps.splitlines() if ".so" in line}


def check_mapped(paths, environment, python):
    """`python` is what an interpreter maps by itself. The modules of its own library are in lib-dynload."""
    for path in paths - python:
        if "/lib-dynload/" not in path and not path.startswith(environment.path) and not OF_EVERY_LINUX.match(os.path.basename(path)):
            fail(f"{path} is the machine's, and a machine may lack it")
    check(any("/gannet/lib/softverbs/" in path for path in paths), f"no softverbs among {sorted(paths)}")
    verbs = {os.path.basename(path) for path in paths if "/gannet/lib/" in path}
    check({"libibverbs.so.1", "librdmacm.so.1"} <= verbs, f"of the wheel's libraries, {verbs} are there")


# Puts, gets, compares; the values are long enough for each way that a value goes. Prints what is mapped.
CLIENT = """
import asyncio, sys, gannet, gannet.aio
address = sys.argv[1]
with gannet.Client(address, deadline=60, connect_timeout=60) as client:
    for size in (0, 5, 5000, 1 << 20):
        value = bytes(i * 7 % 251 for i in range(size))
        client.put(f"key{size}", value)
        assert client.get(f"key{size}") == value, size
    assert client.get("nothing") is None
    assert client.incr("visits") == 1
async def of_loop():
    async with gannet.aio.Client(address, deadline=60, connect_timeout=60) as client:
        assert await client.get("key5") == bytes(i * 7 % 251 for i in range(5))
asyncio.run(of_loop())
print(open("/proc/self/maps").read())
"""
# Every name that the package shows has types, so type checkers have something to check.
TYPES = """
import inspect, pathlib, typing, gannet, gannet.aio
assert (pathlib.Path(gannet.__file__).parent / "py.typed").exists()
for of in (gannet.Client, gannet.aio.Client, gannet.walk, gannet.hot_keys):
    for name, function in [(of.__name__, of)] if inspect.isfunction(of) else inspect.getmembers(of, inspect.isfunction):
        if not name.startswith("_"):
            assert "return" in typing.get_type_hints(function), (of, name)
"""
# What Python itself maps. A client's modules of the standard library included.
PYTHON = "import asyncio, ctypes, glob, _cffi_backend; print(open('/proc/self/maps').read())"


def check_use(environment):
    python = libraries_in(environment.run("python", "-c", PYTHON))
    with environment.server() as (server, address):
        check_mapped(libraries_in(read(f"/proc/{server.pid}/maps")), environment, set())
        check_mapped(libraries_in(environment.run("python", "-c", CLIENT, address)), environment, python)
        kvcli = ("kvcli", f"--server={address}", "--deadline_ms=60000")
        environment.run(*kvcli, "put", "greeting", "hello")
        check(environment.run(*kvcli, "get", "greeting") == "hello", "what kvcli put, kvcli gets")
        check(environment.run(*kvcli, "get", "visits") == "1", "what Python wrote, kvcli gets")
        # What kvcli runs has the environment that kvcli was given.
        inner = environment.run(*kvcli, "lock", "job", "--", "env")
        check("softverbs" not in inner and "GANNET_" not in inner, f"a child of kvcli has the environment {inner}")
        said = environment.run("python", "-m", "gannet.server", f"--listen={address}", code=1)
        check("in use" in said and address.split(":")[1] in said, f"of a port that is taken: {said}")
    environment.run("python", "-c", TYPES)


# Reads a line when its primary is dead.
GROUP_CLIENT = """
import sys, gannet
with gannet.Client(sys.argv[1], deadline=60, connect_timeout=60) as client:
    client.put("key", "value")
    print("stored", flush=True)
    sys.stdin.readline()
    assert client.get("key") == b"value"
    client.put("key", "newer")
"""


def check_group(environment):
    with tempfile.TemporaryDirectory() as folder:
        group = local_cluster.LocalCluster(
            argparse.Namespace(build=environment.path, groups=1, nodes=2, etcd=1, memory="64M", lease_ms=1000), folder)
        try:
            group.start_etcd()
            group.start_servers()
            client = subprocess.Popen([f"{environment.path}/bin/python", "-c", GROUP_CLIENT, group.endpoint()], text=True,
                                      env=environment.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            check(client.stdout.readline() == "stored\n", "a client of a group stores nothing")
            group.processes[group.primary()].kill()
            client.communicate("go on\n", timeout=START_SECONDS)
            check(client.returncode == 0, f"a client whose primary died ends with {client.returncode}")
        finally:
            group.stop()


def check_errors(environment):
    said = environment.run("kvserver", "--nonsense", code=2)
    check("nonsense" in said and "Traceback" not in said, f"of a wrong flag: {said}")
    said = environment.run("python", "-m", "gannet.server", "--memory=much", code=2)
    check("much" in said and "Traceback" not in said, f"of a wrong value: {said}")
    said = environment.run("python", "-m", "gannet.server", "--cluster=c", "--etcd=http://127.0.0.1:1", "--name=n1",
                           "--listen=127.0.0.1:0", "--memory=64M", code=1)
    check("etcd gives no answer" in said and "Traceback" not in said, f"of no etcd: {said}")
    said = environment.run("kvcli", "--server=127.0.0.1:1", "--deadline_ms=300", "get", "key", code=3)
    check("Traceback" not in said and "127.0.0.1:1" in said, f"of no server: {said}")
    version = environment.run("python", "-c", "import gannet; print(gannet.__version__)").strip()
    check(version in environment.run("kvserver", "--version"), f"kvserver is not {version}")
    # Python ignores SIGPIPE. What it executes must not.
    ignored = re.search(r"SigIgn:\s*(\w+)", environment.run("softverbs-run", "cat", "/proc/self/status"))
    check(not int(ignored[1], 16) & 1 << signal.SIGPIPE - 1, "SIGPIPE is ignored by what softverbs-run runs")


# With an RDMA device that is none: which libraries this process and a program get. Nothing of the package is loaded before
# the lie is told.
DEVICE = """
import importlib.util, os, sys
path = next(path for path in (f"{folder}/gannet/verbs.py" for folder in sys.path) if os.path.exists(path))
spec = importlib.util.spec_from_file_location("gannet.verbs", path)
verbs = sys.modules["gannet.verbs"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(verbs)
verbs.DEVICES = "/dev/nul[l]"
import gannet
chosen = {"LD_LIBRARY_PATH": "/before"}
verbs.choose(chosen)
print(chosen, open("/proc/self/maps").read())
"""


def check_device_without_libraries(environment):
    """Softverbs is used, and that is said."""
    said = environment.run("python", "-c", DEVICE)
    for words in ("/dev/null is an RDMA device", "libibverbs.so.1", "/gannet/lib/softverbs:/before'",
                  "'GANNET_SOFTVERBS_EXEC': '=/before'", "/gannet/lib/softverbs/libibverbs.so.1\n"):
        check(words in said, f"of a device without its libraries, {words} is missing: {said}")
    check(said.count("is an RDMA device") == 1, f"of a device without its libraries: {said}")


def check_device_with_libraries(environment):
    said = environment.run("python", "-c", DEVICE)
    check(said.startswith("{'LD_LIBRARY_PATH': '/before'} "), f"of a device with its libraries: {said.splitlines()[0]}")
    paths = libraries_in(said)
    check(any("libibverbs.so" in path for path in paths), f"no libibverbs among {paths}")
    check(not any("softverbs" in path for path in paths), f"softverbs, beside the machine's libraries: {paths}")


def install(build, wheel, path):
    """Into an environment without pip, which takes seconds to make: the pip of the tools installs."""
    run(sys.executable, "-m", "venv", "--without-pip", path)
    run(f"{build}/wheel/tools/bin/pip", "--isolated", "--disable-pip-version-check", "--python", f"{path}/bin/python", "install", "-q",
        "--no-index", "--find-links", f"{build}/wheel/dependencies", wheel)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source")
    parser.add_argument("--build")
    parser.add_argument("--wheel")
    parser.add_argument("--installed", help=argparse.SUPPRESS)  # this program, run by itself where libraries are hidden
    arguments = parser.parse_args()
    if arguments.installed:
        environment = Environment(arguments.installed)
        check_use(environment)
        check_group(environment)
        check_errors(environment)
        check_device_without_libraries(environment)
        return
    wheel = arguments.wheel
    if not wheel:
        run(f"{arguments.source}/packaging/wheel/make", arguments.build)
        [wheel] = glob.glob(f"{arguments.build}/wheel/*.whl")
    with tempfile.TemporaryDirectory() as folder:
        install(arguments.build, wheel, folder)
        check_verdict(wheel, f"{arguments.build}/wheel/tools/bin")
        added = check_contents(wheel)
        check_device_with_libraries(Environment(folder))
        run_hidden(added, "--installed", folder)
    print("passed")


main()
