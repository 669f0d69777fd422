"""Runs the commands of docs/getting-started.md with the packages that were installed into a root.

Blocks of sh are scripts. In blocks of console, commands are behind "$ " and the other lines are what
they print. Programs and libraries are the root's, and so are the files of /etc/gannet and
/usr/share/gannet. What needs a whole system is stood in for: sudo runs the command, apt looks whether
it gets all packages, and systemctl runs the command of the unit.
"""

import importlib.machinery
import importlib.util
import os
import re
import signal
import subprocess

STAND_INS = {
    "sudo": """
[ "$1" != -u ] || shift 2
exec "$@"
""",
    "apt": """
[ "$1" = install ] || exit 2
shift
[ "$(printf '%s\\n' "$@" | sort)" = "$(ls ./*.deb | sort)" ]
""",
    "systemctl": """
[ "${*: -1}" = kvserver ] || exit 5
case $1 in
  enable) [ "$2" = --now ] ;;
  restart)
    kill "$(cat "$WALK/pid")"
    while kill -0 "$(cat "$WALK/pid")" 2>/dev/null; do sleep 0.05; done ;;
  *) exit 2 ;;
esac
unit=$ROOT/usr/lib/systemd/system/kvserver.service
command=$(sed -n 's/^ExecStart=//p' "$unit" | sed -E "s#(^|=)/#\\\\1$ROOT/#g")
setsid $command >"$WALK/server.out" 2>"$WALK/server.err" </dev/null &
echo $! >"$WALK/pid"
for try in $(seq 600); do
  ! grep -q ^READY "$WALK/server.out" || exit 0
  kill -0 $! 2>/dev/null || break
  sleep 0.1
done
cat "$WALK/server.err"
exit 1
""",
}


def load_walk(source):
    """tests/walk/walk, which reads pages."""
    loader = importlib.machinery.SourceFileLoader("walk", f"{source}/tests/walk/walk")
    loader_spec = importlib.util.spec_from_loader("walk", loader)
    module = importlib.util.module_from_spec(loader_spec)
    loader.exec_module(module)
    return module


def steps_of(walk, text):
    """(command, what it prints or None), in order."""
    for _, kind, body in walk.blocks_of(text):
        if kind == "sh":
            yield "\n".join(body), None
        elif kind == "console":
            yield from walk.sessions_of(body)


def environment_of(root, packages, work):
    os.makedirs(f"{work}/stand-in")
    for name, script in STAND_INS.items():
        with open(f"{work}/stand-in/{name}", "w", encoding="utf-8") as file:
            file.write(f"#!/usr/bin/env bash\nset -u\n{script}")
        os.chmod(file.name, 0o755)
    return os.environ | {
        "PATH": f"{work}/stand-in:{root}/usr/bin:/usr/bin:{os.environ['PATH']}",
        "PKG_CONFIG_PATH": f"{root}/usr/lib/pkgconfig",
        "LD_LIBRARY_PATH": f"{root}/usr/lib",
        "PYTHONPATH": f"{root}/usr/lib/python3/dist-packages",
        "PYTHONDONTWRITEBYTECODE": "1",
        "ROOT": root,
        "WALK": work,
        "TMPDIR": work,
    }


def problems(source, root, packages, work):
    """Runs the page. Yields what is wrong with it; an empty sequence says that every command ran."""
    os.makedirs(work)
    walk = load_walk(source)
    with open(f"{source}/docs/getting-started.md", encoding="utf-8") as file:
        page = file.read()
    shell = subprocess.Popen(["bash", "--norc"], cwd=packages, env=environment_of(root, packages, work), text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        for command, wanted in steps_of(walk, page):
            script = re.sub(r"/(?=(etc|usr/share)/gannet\b)", f"{root}/", command)
            # A command that takes no terminal for granted, in the shell itself, so that cd works.
            print(f"{{ set -e\n{script}\n}} >{work}/output 2>&1 </dev/null; echo done", file=shell.stdin, flush=True)
            ended = shell.stdout.readline() == "done\n"
            with open(f"{work}/output", encoding="utf-8", errors="replace") as file:
                printed = file.read()
            if not ended:
                yield f"getting-started.md: this failed:\n{command}\n{printed[-3000:]}"
                return
            if wanted is not None and not walk.matches(printed, wanted):
                yield f"getting-started.md: {command}\nprinted:\n{printed[-2000:]}\nand not:\n{wanted}"
    finally:
        shell.stdin.close()
        shell.wait()
        stop(f"{work}/pid")


def stop(pid_file):
    if os.path.exists(pid_file):
        with open(pid_file, encoding="utf-8") as file:
            os.kill(int(file.read()), signal.SIGKILL)
