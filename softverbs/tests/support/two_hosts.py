#!/usr/bin/python3
"""Runs a command where softverbs sees two hosts: two_hosts.py [--mtu=BYTES] COMMAND...

Makes two network namespaces, A and B, that are joined by a veth pair, and runs COMMAND in A. It needs root, or a kernel
that gives ordinary users namespaces; otherwise it prints why there are none and ends with 77. Nothing is left behind:
the kernel removes the namespaces when the last process in them ends.

COMMAND finds these in its environment:
  TWO_HOSTS_A, TWO_HOSTS_B     the addresses of A and B
  TWO_HOSTS_A6, TWO_HOSTS_B6   the same for IPv6
  TWO_HOSTS_B_NET              the file of B's namespace, for setns and nsenter --net=
The interface of each is called veth. Python tests import enter_b and set_link from here.
"""

import argparse
import os
import subprocess
import sys
import time

SKIPPED = 77
DEVICE = "veth"
LINK_LIMIT_S = 10
ADDRESSES = {"A": "10.77.0.1", "B": "10.77.0.2"}
ADDRESSES6 = {"A": "fd77::1", "B": "fd77::2"}


class NoNamespaces(Exception):
    pass


def enter_b():
    """Returns the words before a command that make it run in B."""
    return ["nsenter", "--net=" + os.environ["TWO_HOSTS_B_NET"]]


def set_link(state):
    """Cuts (down) or heals (up) the network at B's end."""
    subprocess.run([*enter_b(), "ip", "link", "set", DEVICE, state], check=True)


def run(*words):
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise NoNamespaces(f"{' '.join(words)}: {made.stderr.strip()}")


def way_in():
    """Returns the words that make a command run in a new network namespace."""
    tried = []
    for words in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        made = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
        if made.returncode == 0:
            return words
        tried.append(made.stderr.strip())
    raise NoNamespaces("no network namespaces here: " + "; ".join(tried))


def set_up(side, prefix, mtu):
    ip = [*prefix, "ip"]
    run(*ip, "link", "set", DEVICE, "mtu", str(mtu))
    run(*ip, "addr", "add", ADDRESSES[side] + "/24", "dev", DEVICE)
    # Without duplicate address detection the address can be used at once.
    run(*ip, "addr", "add", ADDRESSES6[side] + "/64", "dev", DEVICE, "nodad")
    for name in ("lo", DEVICE):
        run(*ip, "link", "set", name, "up")


def await_link(prefix):
    """Waits until the kernel has noticed that both ends of the pair are up."""
    deadline = time.monotonic() + LINK_LIMIT_S
    while " state UP " not in subprocess.run([*prefix, "ip", "link", "show", DEVICE], capture_output=True, text=True,
                                             check=True).stdout:
        if time.monotonic() > deadline:
            raise NoNamespaces(f"{DEVICE} does not come up")
        time.sleep(0.01)


def inside(options):
    """Runs in A. Makes B, joins both, and runs the command."""
    # B's namespace lives as long as this process does.
    holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo made; exec cat"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    if holder.stdout.readline() != "made\n":
        raise NoNamespaces("no second network namespace")
    os.environ["TWO_HOSTS_B_NET"] = f"/proc/{holder.pid}/ns/net"
    run("ip", "link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", str(holder.pid))
    set_up("A", [], options.mtu)
    set_up("B", enter_b(), options.mtu)
    await_link([])
    await_link(enter_b())
    for side, address in ADDRESSES.items():
        os.environ["TWO_HOSTS_" + side] = address
        os.environ["TWO_HOSTS_" + side + "6"] = ADDRESSES6[side]
    try:
        return subprocess.run(options.command, check=False).returncode
    finally:
        holder.stdin.close()
        holder.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        if options.inside:
            return inside(options)
        os.execvp("unshare", [*way_in(), sys.executable, __file__, "--inside", *sys.argv[1:]])
    except (NoNamespaces, FileNotFoundError) as why:
        print("skipped:", why)
        return SKIPPED


if __name__ == "__main__":
    sys.exit(main())
