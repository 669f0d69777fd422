#!/usr/bin/env python3
"""Makes the OCI image as `./dev image` does, unpacks it, and uses it as a container runtime would.

    image_test.py --source DIR --packages DIR
    image_test.py --archive FILE                   of an image that was made

  1. It says what a runtime must know: an ordinary user, the command, the ports; it is small.
  2. It has no shell, nothing with more rights than its caller, and the license of every package.
  3. As its user, with nothing else from this machine, the server serves on 0.0.0.0, kvcli puts and gets, and the probes of
     packaging/kubernetes answer.

Needs root, for the namespaces of 3, and buildah and Debian's packages. Without them it says so and is skipped (77).
"""

import argparse
import ctypes
import glob
import json
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "cluster"))
import local_cluster  # noqa: E402

SKIPPED = 77
BYTES_MAX = 24 << 20  # of the archive
UID = 10471
WAIT_S = 120  # until something that should happen at once counts as hung
UNREACHED = re.compile("Failed to fetch|Could not resolve|Unable to locate package|Temporary failure")


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


# --- the image ------------------------------------------------------------------------------------


def make(options, work):
    """Has the image made of the packages that are there. Returns the archive's path."""
    build = f"{work}/build"
    os.makedirs(build)
    done = subprocess.run([f"{options.source}/packaging/image/make", build, "--packages", options.packages], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0 and UNREACHED.search(done.stdout):
        skip(f"Debian's packages cannot be fetched here: {done.stdout[-300:]}")
    check(done.returncode == 0, done.stdout)
    return done.stdout.split()[-1]


def read_blob(layout, descriptor):
    with open(f"{layout}/blobs/{descriptor['digest'].replace(':', '/')}", "rb") as file:
        return file.read()


def unpack(archive, work):
    """Unpacks the archive as a runtime does. Returns the folder and the configuration."""
    layout, root = f"{work}/layout", f"{work}/root"
    with tarfile.open(archive) as tar:
        tar.extractall(layout)
    with open(f"{layout}/index.json", encoding="utf-8") as file:
        index = json.load(file)
    manifest = json.loads(read_blob(layout, index["manifests"][0]))
    for layer in manifest["layers"]:
        check(layer["mediaType"].endswith("+gzip"), f"a layer is {layer['mediaType']}, and not compressed")
        with tarfile.open(f"{layout}/blobs/{layer['digest'].replace(':', '/')}") as tar:
            tar.extractall(root)
    return root, json.loads(read_blob(layout, manifest["config"]))


def check_configuration(config):
    what = config["config"]
    check(what["User"] == f"{UID}:{UID}", f"the user is {what['User']}")
    check(what["Cmd"] == ["kvserver", "--listen=0.0.0.0:7471"] and not what.get("Entrypoint"), f"the command is {what}")
    check(set(what["ExposedPorts"]) == {"7471/tcp", "9471/tcp"}, f"the ports are {what['ExposedPorts']}")
    check(what["Labels"]["org.opencontainers.image.title"] == "gannet", what["Labels"])
    check(config["architecture"] == "amd64" and config["os"] == "linux", config)


def check_contents(root):
    programs = sorted(os.listdir(f"{root}/usr/bin"))
    check(programs == ["gannet-proxy", "kvcli", "kvload", "kvserver", "softverbs-run"], f"programs: {programs}")
    for folder, _, names in os.walk(root):
        for name in names:
            mode = os.lstat(f"{folder}/{name}").st_mode
            check(not stat.S_ISREG(mode) or not mode & (stat.S_ISUID | stat.S_ISGID), f"{folder}/{name} is setuid or setgid")
    check(os.stat(f"{root}/var/lib/gannet").st_uid == UID, "the user's folder is another's")
    packages = os.listdir(f"{root}/var/lib/dpkg/status.d")
    check("libc6" in packages and "gannet-server" in packages, f"packages: {packages}")
    for package in packages:
        check(os.path.exists(f"{root}/usr/share/doc/{package}/copyright") or os.path.islink(f"{root}/usr/share/doc/{package}"),
              f"there is no license of {package}")


# --- a container ----------------------------------------------------------------------------------


def enter(root):
    """To be run in a child: what a runtime does before it runs the command."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # ends with this process
    os.chroot(root)
    os.chdir("/var/lib/gannet")
    os.setgroups([])
    os.setgid(UID)
    os.setuid(UID)


def start(root, *command, **options):
    return subprocess.Popen(command, env={"PATH": "/usr/bin"}, text=True, preexec_fn=lambda: enter(root), **options)


def kvcli(root, port, *words):
    process = start(root, "kvcli", f"--server=127.0.0.1:{port}", "--device=soft", "--quiet", *words, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=WAIT_S)
    check(process.returncode == 0, f"kvcli {words}: {process.returncode} {out} {err}")
    return out


def get(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def inside(root):
    """Runs in mount and process namespaces of its own."""
    for kind, where in (("proc", "proc"), ("tmpfs", "dev")):
        subprocess.run(["mount", "-t", kind, kind, f"{root}/{where}"], check=True)
    os.makedirs(f"{root}/dev/shm")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777,size=64m", "tmpfs", f"{root}/dev/shm"], check=True)  # as containers have it
    for name in ("null", "urandom", "random", "zero"):
        open(f"{root}/dev/{name}", "w", encoding="utf-8").close()
        subprocess.run(["mount", "--bind", f"/dev/{name}", f"{root}/dev/{name}"], check=True)
    http = local_cluster.free_ports(1)[0]
    server = start(root, "kvserver", "--listen=0.0.0.0:0", f"--http=0.0.0.0:{http}", "--memory=64M", "--device=soft",
                   stdout=subprocess.PIPE)
    check(select.select([server.stdout], [], [], WAIT_S)[0], "the server does not start")
    ready = server.stdout.readline()
    check(ready.startswith("READY 0.0.0.0:"), f"the server says {ready!r}")
    port = ready.split()[1].rpartition(":")[2]
    kvcli(root, port, "put", "greeting", "hello")
    check(kvcli(root, port, "get", "greeting").strip() == "hello", "get gives another value")
    for path in ("/readyz", "/healthz"):
        status, text = get(http, path)
        check(status == 200, f"{path}: {status} {text}")
    server.terminate()
    end = time.monotonic() + WAIT_S
    while server.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    check(server.returncode == 0, f"the server ended with {server.returncode}")
    for program in ("kvload", "gannet-proxy", "kvcli"):
        process = start(root, program, "--version", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out, _ = process.communicate(timeout=WAIT_S)
        check(process.returncode == 0, f"{program} --version: {out}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--source")
    parser.add_argument("--packages")
    parser.add_argument("--archive")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.inside)
        return
    if os.getuid() != 0:
        skip("needs root, to run the image's programs in namespaces")
    for program in ("buildah", "apt-get", "unshare"):
        if shutil.which(program) is None:
            skip(f"there is no {program}; ./dev deps image installs buildah")
    check(options.archive or glob.glob(f"{options.packages}/*.deb"), f"there are no packages in {options.packages}")
    with tempfile.TemporaryDirectory(prefix="gannet-image-") as work:
        archive = options.archive or make(options, work)
        size = os.path.getsize(archive)
        check(size <= BYTES_MAX, f"the image has {size} bytes")
        root, config = unpack(archive, work)
        check_configuration(config)
        check_contents(root)
        os.chmod(work, 0o711)  # so that the image's user gets to its root
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", sys.executable, os.path.abspath(__file__), f"--inside={root}"],
                              check=False)
        check(done.returncode == 0, "the image's programs")
        print(f"an image of {size / 1e6:.1f} MB, {sum(1 for _ in os.scandir(f'{root}/var/lib/dpkg/status.d'))} packages")


if __name__ == "__main__":
    main()
