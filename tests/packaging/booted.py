"""A Debian of its own that systemd boots in namespaces of this machine, for tests of services.

Its root is this machine's, under an overlay that is thrown away: what is installed, written or removed there stays
there. No package counts as installed. systemd is process 1 of a namespace for each kind of thing: processes, mounts, network, cgroups, IPC, names.
The units that this machine runs are not started, nor is udev. That takes a second, where a guest takes a minute.

Needs root. unavailable() says why it cannot work here.
"""

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

SYSTEMD = "/lib/systemd/systemd"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
WAIT_S = 60  # until something that takes a moment counts as hung
# The folders of units that want others. Only what is in WANTED is started at boot.
WANTS = re.compile(r"\.(wants|requires|upholds)$")
WANTED = ("systemd-journald.service", "systemd-sysusers.service", "systemd-tmpfiles-setup.service")

# Run as the first process of the new namespaces: makes the root, goes there, becomes systemd.
BECOME_SYSTEMD = """set -e
mount -t overlay overlay -o lowerdir=/,upperdir={work}/up/upper,workdir={work}/up/work {root}
cd {root}
for folder in tmp run dev; do mount -t tmpfs tmpfs $folder; done
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for file in null zero full random urandom tty; do touch dev/$file; mount --bind /dev/$file dev/$file; done
mkdir dev/shm dev/pts run/shared run/old
mount -t tmpfs tmpfs dev/shm
mount --bind {shared} run/shared
ln -s /proc/self/fd dev/fd
pivot_root . run/old
umount -l run/old
mount --make-rshared /
ip link set lo up
exec env -i container=gannet-test PATH={path} {systemd} --unit=basic.target --log-target=journal --show-status=no
"""


def unavailable():
    """Why a system cannot be booted here, or None."""
    if os.getuid() != 0:
        return "needs root, to boot systemd in namespaces"
    for program in (SYSTEMD, "/usr/bin/systemctl", "/usr/bin/unshare", "/usr/bin/nsenter"):
        if not os.access(program, os.X_OK):
            return f"there is no {program}"
    with tempfile.TemporaryDirectory() as work:
        trial = f"mount -t tmpfs tmpfs {work}; cd {work}; mkdir up work root cgroup; mount -t cgroup2 cgroup2 cgroup; " \
                f"mkdir cgroup/gannet-trial-{os.getpid()}; rmdir cgroup/gannet-trial-{os.getpid()}; " \
                "mount -t overlay overlay -o lowerdir=/,upperdir=up,workdir=work root"
        done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "--cgroup", "sh", "-ec", trial],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return None if done.returncode == 0 else f"this machine lends no namespaces: {done.stdout.strip()}"


def enter_namespaces():
    """Starts this program again in namespaces of its own, so that mounts and processes end with it, however it ends."""
    if "GANNET_ENTERED" in os.environ:
        return
    os.environ["GANNET_ENTERED"] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv])


class Booted:
    """`shared` is what the system sees as /run/shared. Use it with `with`."""

    def __init__(self, shared):
        self.shared = shared
        self.work = tempfile.mkdtemp()
        self.pid = None  # systemd's, as this machine sees it
        self.process = None
        self.cgroup = None

    def __enter__(self):
        try:
            self._boot()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_):
        self._end()

    def _boot(self):
        for name in ("up", "root", "cgroup"):
            os.mkdir(f"{self.work}/{name}")
        self._host("mount", "-t", "tmpfs", "tmpfs", f"{self.work}/up")
        for name in ("upper", "work"):
            os.mkdir(f"{self.work}/up/{name}")
        self._choose_units()
        self._forget_packages()
        self._host("mount", "-t", "cgroup2", "cgroup2", f"{self.work}/cgroup")
        self.cgroup = f"{self.work}/cgroup/gannet-{os.getpid()}"
        os.mkdir(self.cgroup)
        script = BECOME_SYSTEMD.format(work=self.work, root=f"{self.work}/root", shared=self.shared, path=PATH,
                                       systemd=SYSTEMD)
        # It enters the cgroup first, as the namespace's root is where it is then.
        self.process = subprocess.Popen(
            ["sh", "-c", f'echo $$ >{self.cgroup}/cgroup.procs; exec "$@"', "sh", "unshare", "--mount", "--pid", "--fork",
             "--kill-child", "--net", "--ipc", "--uts", "--cgroup", "sh", "-c", script])
        self.pid = self.wait_for("a first process", self._first_process)
        self.wait_for("systemd", lambda: self._is_up() or self._is_over())
        if self._is_over():
            raise RuntimeError(f"systemd did not boot: exit code {self.process.returncode}")

    def _choose_units(self):
        """Hides every folder of wanted units, and makes one with those of WANTED."""
        for folder in ("/etc/systemd/system", "/usr/lib/systemd/system"):
            names = os.listdir(folder) if os.path.isdir(folder) else []
            for name in filter(WANTS.search, names):
                hidden = f"{self.work}/up/upper{folder}/{name}"
                os.makedirs(hidden)
                os.setxattr(hidden, "trusted.overlay.opaque", b"y")
        # This machine's disks are not to be mounted again. An image for containers says that packages may
        # neither start nor stop services.
        for path in ("etc/fstab", "etc/crypttab", "usr/sbin/policy-rc.d"):
            os.makedirs(os.path.dirname(f"{self.work}/up/upper/{path}"), exist_ok=True)
            os.mknod(f"{self.work}/up/upper/{path}", stat.S_IFCHR)  # of overlayfs: there is no such file
        wants = f"{self.work}/up/upper/etc/systemd/system/sysinit.target.wants"
        os.makedirs(wants, exist_ok=True)
        for name in WANTED:
            os.symlink(f"/usr/lib/systemd/system/{name}", f"{wants}/{name}")
        for folder, _, _ in os.walk(f"{self.work}/up/upper"):
            os.chmod(folder, 0o755)

    def _forget_packages(self):
        """Of this machine's packages, dpkg would read a hundred thousand files' names, and run their triggers."""
        database = f"{self.work}/up/upper/var/lib/dpkg"
        for folder in ("updates", "info", "triggers"):
            os.makedirs(f"{database}/{folder}")
        os.setxattr(database, "trusted.overlay.opaque", b"y")
        open(f"{database}/status", "w", encoding="utf-8").close()

    def _first_process(self):
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
                children = file.read().split()
        except FileNotFoundError:
            children = []
        if self._is_over():
            raise RuntimeError(f"unshare ended with {self.process.returncode}")
        return int(children[0]) if children else None

    def _is_over(self):
        return self.process.poll() is not None

    def _is_up(self):
        return self.run("systemctl", "is-active", "--quiet", "basic.target", check=False).returncode == 0

    def _host(self, *command):
        subprocess.run(command, check=True)

    def _end(self):
        if self.process is not None:
            if self.pid is not None and not self._is_over():
                os.kill(self.pid, signal.SIGKILL)  # and with it all processes of its namespace
            self.process.wait(WAIT_S)
        if self.cgroup is not None and os.path.isdir(self.cgroup):
            folders = [folder for folder, _, _ in os.walk(self.cgroup, topdown=False)]
            self.wait_for("the last process to end", lambda: all(map(self._remove, folders)))
        for name in ("cgroup", "up"):
            subprocess.run(["umount", "-l", f"{self.work}/{name}"], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.work)

    @staticmethod
    def _remove(folder):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:  # busy: a process is on its way out
            return False
        return True

    @staticmethod
    def wait_for(what, come):
        """Returns what `come` returns, once that is true."""
        end = time.monotonic() + WAIT_S
        while not (got := come()):
            if time.monotonic() > end:
                raise TimeoutError(f"waited {WAIT_S} s for {what}")
            time.sleep(0.02)
        return got

    def run(self, *command, check=True, **options):
        """Runs a command as root in the system."""
        done = subprocess.run(["nsenter", "--target", str(self.pid), "--all", "--", "env", "-i", f"PATH={PATH}",
                               "DEBIAN_FRONTEND=noninteractive", *command], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=WAIT_S, check=False, **options)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-4000:]}")
        return done
