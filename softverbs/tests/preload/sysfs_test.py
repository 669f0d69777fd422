#!/usr/bin/python3
"""What programs see at /sys/class/infiniband under softverbs-run: sysfs_test.py BIN_DIR MAP

MAP is the list of functions that the library to preload exports (preload.map). Each of those that take the place of the C
library's is called here. The test executes itself under softverbs-run: sysfs_test.py --role ROLE, which prints JSON.
"""

import ctypes
import errno
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest

CLASS = "/sys/class/infiniband"
DEVICE = CLASS + "/softverbs0"
GUID = DEVICE + "/node_guid"
NODE = "/dev/infiniband/softverbs0"
LIMIT_S = 60
NO_NAMESPACES = "no namespaces here"

# --- Roles: what the programs do whose view is tested.


def text(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def place():
    """Where the device's folder is in truth."""
    function = ctypes.CDLL(None).realpath
    function.restype = ctypes.c_char_p
    return function(DEVICE.encode(), None).decode()


def look():
    return sorted(os.listdir(CLASS))


class CLibrary:
    """Calls functions of the C library by name, as a compiled program does. Each method says whether the function of
    this name sees the device."""

    def __init__(self):
        self.library = ctypes.CDLL(None, use_errno=True)
        self.buffer = ctypes.create_string_buffer(8192)
        net = DEVICE + "/device/net"
        self.link = f"{net}/{os.listdir(net)[0]}".encode() if os.path.exists(net) else b"/nowhere"

    def call(self, name, *arguments, result=ctypes.c_int):
        function = getattr(self.library, name)
        function.restype = result
        return function(*(each.encode() if isinstance(each, str) else each for each in arguments))

    def error(self, name, *arguments):
        self.call(name, *arguments)
        return ctypes.get_errno()

    def descriptor(self, name, *arguments):
        fd = self.call(name, *arguments)
        if fd < 0:
            return False
        with os.fdopen(fd) as file:
            return len(file.read()) == len("0000:0000:0000:0000\n")

    def pointer(self, name, *arguments):
        return self.call(name, *arguments, result=ctypes.c_void_p) is not None

    def found_by_glob(self, name):
        found = (ctypes.c_void_p * 9)()  # gl_pathc, gl_pathv and others
        if self.call(name, CLASS + "/soft*/node_guid", 0, None, found) != 0:
            return False
        paths = ctypes.cast(found[1], ctypes.POINTER(ctypes.c_char_p))
        return found[0] == 1 and paths[0].decode() == GUID

    def changed_folder(self, name):
        changed = self.call(name, DEVICE) == 0 and os.path.exists("node_guid")
        os.chdir("/")
        return changed

    def calls(self):
        at, buffer, size = -100, self.buffer, len(self.buffer)  # AT_FDCWD
        zero = {name: [GUID, buffer] for name in ("stat", "stat64", "lstat", "lstat64")}
        zero |= {name: [1, GUID, buffer] for name in ("__xstat", "__xstat64", "__lxstat", "__lxstat64")}
        zero |= {name: [at, GUID, buffer, 0] for name in ("fstatat", "fstatat64")}
        zero |= {name: [1, at, GUID, buffer, 0] for name in ("__fxstatat", "__fxstatat64")}
        zero |= {name: [GUID, os.R_OK] for name in ("access", "eaccess", "euidaccess")}
        zero |= {"statx": [at, GUID, 0, 0x7ff, buffer], "faccessat": [at, GUID, os.R_OK, 0]}
        opens = {name: [GUID, 0] for name in ("open", "open64", "__open_2", "__open64_2")}
        opens |= {name: [at, GUID, 0] for name in ("openat", "openat64", "__openat_2", "__openat64_2")}
        pointers = {name: [GUID, "r"] for name in ("fopen", "fopen64")}
        pointers |= {"opendir": [DEVICE], "realpath": [GUID, None], "canonicalize_file_name": [GUID],
                     "__realpath_chk": [GUID, buffer, size]}
        positive = {name: [DEVICE, ctypes.byref(ctypes.c_void_p()), None, None] for name in ("scandir", "scandir64")}
        positive |= {"readlink": [self.link, buffer, size], "readlinkat": [at, self.link, buffer, size],
                     "__readlink_chk": [self.link, buffer, size, size],
                     "__readlinkat_chk": [at, self.link, buffer, size, size]}
        seen = {name: self.call(name, *arguments) == 0 for name, arguments in zero.items()}
        seen |= {name: self.descriptor(name, *arguments) for name, arguments in opens.items()}
        seen |= {name: self.pointer(name, *arguments) for name, arguments in pointers.items()}
        seen |= {name: self.call(name, *arguments) > 0 for name, arguments in positive.items()}
        seen |= {name: self.found_by_glob(name) for name in ("glob", "glob64")}
        for name in ("getxattr", "lgetxattr"):  # there is none, but the file is
            seen[name] = self.error(name, GUID, "user.none", buffer, size) in (errno.ENODATA, errno.ENOTSUP)
        seen |= {name: self.call(name, GUID, buffer, size) >= 0 for name in ("listxattr", "llistxattr")}
        seen["chdir"] = self.changed_folder("chdir")
        return seen


def interface_name(index):
    with open(f"{DEVICE}/ports/1/gid_attrs/ndevs/{index}", encoding="ascii") as file:
        return file.read().strip()


def in_groups(guid):
    return ":".join(guid[at:at + 2].hex() for at in range(0, 8, 2)) + "\n"


def files_and_verbs():
    """The same of the device, from its files and from the verbs."""
    import pyverbs.enums as e  # pylint: disable=import-outside-toplevel
    from pyverbs.device import Context  # pylint: disable=import-outside-toplevel
    import socket  # pylint: disable=import-outside-toplevel
    context = Context(name="softverbs0")
    device, port = context.query_device(), context.query_port(1)
    base = DEVICE + "/ports/1/"
    entries = context.query_gid_table(port.gid_tbl_len)
    files = {"guid": text(GUID), "version": text(DEVICE + "/hw_rev"), "lid": text(base + "lid"),
             "layer": text(base + "link_layer"), "state": text(base + "state"), "capabilities": text(base + "cap_mask"),
             "types": sorted(os.listdir(base + "gid_attrs/types"), key=int),
             "gids": [text(f"{base}gids/{index}").strip() for index in range(port.gid_tbl_len)]}
    layers = {e.IBV_LINK_LAYER_ETHERNET: "Ethernet\n", e.IBV_LINK_LAYER_INFINIBAND: "InfiniBand\n"}
    verbs = {"guid": in_groups(device.node_guid.to_bytes(8, "little")), "version": f"{device.hw_ver:x}\n",
             "lid": f"0x{port.lid:x}\n", "layer": layers[port.link_layer], "state": "4: ACTIVE\n" if port.state == e.IBV_PORT_ACTIVE else "",
             "capabilities": f"0x{port.port_cap_flags:08x}\n", "types": [str(entry.gid_index) for entry in entries],
             "gids": [str(context.query_gid(1, index)).split()[-1] for index in range(port.gid_tbl_len)]}
    for entry in entries:
        index = entry.gid_index
        verbs[f"type {index}"] = {e.IBV_GID_TYPE_ROCE_V2: "RoCE v2\n", e.IBV_GID_TYPE_IB: "IB/RoCE v1\n"}[entry.gid_type]
        files[f"type {index}"] = text(f"{base}gid_attrs/types/{index}")
        if entry.ndev_ifindex != 0:
            verbs[f"interface {index}"] = socket.if_indextoname(entry.ndev_ifindex)
            files[f"interface {index}"] = interface_name(index)
    return [files, verbs]


def changes():
    """What fails with EACCES, of all ways to change a file that is shown."""
    refused = {}
    ways = {"write": lambda: os.open(GUID, os.O_WRONLY), "create": lambda: os.open(DEVICE + "/new", os.O_CREAT),
            "truncate": lambda: os.open(GUID, os.O_TRUNC)}
    for name, way in ways.items():
        try:
            os.close(way())
        except PermissionError:
            refused[name] = True
    library = ctypes.CDLL(None, use_errno=True)
    for mode in ("w", "a", "r+"):
        library.fopen.restype = ctypes.c_void_p
        if library.fopen(GUID.encode(), mode.encode()) is None and ctypes.get_errno() == 13:
            refused[mode] = True
    return refused


def places():
    """The trees that are there before a look and after it."""
    folder = os.environ["XDG_RUNTIME_DIR"]
    before = os.listdir(folder)
    look()
    return [before, os.listdir(folder)]


def look_and_be_killed():
    look()
    os.kill(os.getpid(), 9)


def look_and_execute():
    look()
    os.execv("/bin/cat", ["cat", GUID])


def look_in_child():
    """The parent's tree outlives a child that looks and exits."""
    before = place()
    executed = subprocess.run(["realpath", DEVICE], check=True, capture_output=True, text=True).stdout.strip()
    pid = os.fork()
    if pid == 0:
        ok = place() not in (before, executed) and os.path.exists(GUID)
        sys.stdout.flush()
        ctypes.CDLL(None).exit(0 if ok else 1)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), executed != before, os.path.exists(before)]


def with_new_address():
    """The GIDs before and after an interface gets an address."""
    gids = DEVICE + "/ports/1/gids"

    def addresses():
        return {text(f"{gids}/{name}").strip() for name in os.listdir(gids)}
    before = addresses()
    subprocess.run(["ip", "addr", "add", "10.99.0.7/32", "dev", "lo"], check=True)
    new = addresses() - before
    subprocess.run(["ip", "addr", "del", "10.99.0.7/32", "dev", "lo"], check=True)
    return [sorted(new), addresses() == before]


def with_a_kernels_device():
    """In a namespace where the kernel has a device, too."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/sys/class"], check=True)
    subprocess.run(["env", "-u", "LD_PRELOAD", "mkdir", "-p", CLASS + "/mlx5_0"], check=True)
    with open(CLASS + "/mlx5_0/node_guid", "w", encoding="ascii") as file:
        file.write("real\n")
    folder = os.open(CLASS, os.O_RDONLY)
    through = os.open("mlx5_0/node_guid", os.O_RDONLY, dir_fd=folder)
    seen = {"listed": look(), "read": text(CLASS + "/mlx5_0/node_guid"), "through": os.read(through, 8).decode(),
            "path": os.path.realpath(CLASS + "/mlx5_0"), "ours": text(GUID) != ""}
    os.mkdir(CLASS + "/mlx5_1")
    return seen | {"later": look()}


ROLES = {"calls": lambda: CLibrary().calls(), "files_and_verbs": files_and_verbs, "changes": changes, "places": places,
         "killed": look_and_be_killed, "execute": look_and_execute, "child": look_in_child,
         "new_address": with_new_address, "kernels_device": with_a_kernels_device,
         "node": lambda: [stat.S_ISCHR(os.stat(NODE).st_mode), os.access(NODE, os.R_OK)]}

# --- The tests.


class SysfsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runtime = folder.name

    def command(self, role, softverbs=True):
        run = [os.path.join(BIN, "softverbs-run")] if softverbs else []
        return [*run, "/usr/bin/python3", os.path.abspath(__file__), "--role", role]

    def start(self, command, **environment):
        return subprocess.run(command, env=os.environ | {"XDG_RUNTIME_DIR": self.runtime} | environment,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def said(self, role, softverbs=True, **environment):
        done = self.start(self.command(role, softverbs), **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return json.loads(done.stdout)

    def said_in_namespace(self, kind, role):
        """The same in a namespace of its own. The user gets one, too, if it has to."""
        for words in (["unshare", kind], ["unshare", "--user", "--map-root-user", kind]):
            if self.start([*words, "true"]).returncode == 0:
                done = self.start([*words, *self.command(role)])
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                return json.loads(done.stdout)
        raise unittest.SkipTest(NO_NAMESPACES)

    def test_every_function_sees_the_device(self):
        seen = self.said("calls")
        self.assertEqual([name for name, sees in seen.items() if not sees], [])
        with open(MAP, encoding="ascii") as file:
            listed = file.read().split("preload/calls.cc", 1)[1]
        self.assertEqual(sorted(seen), sorted(re.findall(r"^ +(\w+);", listed, re.MULTILINE)))

    def test_without_softverbs_none_does(self):
        self.assertEqual([name for name, sees in self.said("calls", softverbs=False).items() if sees], [])

    def test_files_and_verbs_agree(self):
        for layer in ("ethernet", "infiniband"):
            files, verbs = self.said("files_and_verbs", SOFTVERBS_LINK_LAYER=layer)
            self.assertEqual(files, verbs)

    def test_nothing_can_be_changed(self):
        self.assertEqual(set(self.said("changes")), {"write", "create", "truncate", "w", "a", "r+"})

    def test_a_program_that_does_not_look_makes_no_tree_and_none_is_left(self):
        before, after = self.said("places")
        self.assertEqual((before, len(after)), ([], 1))
        self.assertEqual(os.listdir(self.runtime), [])

    def test_the_next_program_removes_what_a_killed_one_left(self):
        self.start(self.command("killed"))
        self.assertEqual(len(os.listdir(self.runtime)), 1)
        before, after = self.said("places")
        self.assertEqual((len(before), len(after)), (1, 1))
        self.assertEqual(os.listdir(self.runtime), [])

    def test_a_program_that_executes_another_leaves_its_tree_to_it(self):
        done = self.start(self.command("execute"))
        self.assertRegex(done.stdout, "^[0-9a-f]{4}(:[0-9a-f]{4}){3}\n$")
        self.assertEqual(os.listdir(self.runtime), [])

    def test_a_long_listing_has_no_errors(self):
        run = os.path.join(BIN, "softverbs-run")
        for folder in (CLASS, DEVICE, DEVICE + "/ports/1", CLASS + "//softverbs0/."):
            done = self.start([run, "ls", "-la", folder])
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        listed = self.start([run, "ls", CLASS + "/.."]).stdout
        self.assertEqual(listed, self.start(["ls", "/sys/class"]).stdout)

    def test_each_process_has_its_own_tree(self):
        self.assertEqual(self.said("child"), [0, True, True])

    def test_a_tree_is_made_elsewhere_if_the_runtime_folder_is_not_there(self):
        self.assertEqual(self.said("node", XDG_RUNTIME_DIR="/nowhere"), [True, True])
        self.assertTrue(all(self.said("calls", XDG_RUNTIME_DIR="/nowhere").values()))

    def test_the_gids_are_those_of_the_present(self):
        gid = "0000:0000:0000:0000:0000:ffff:0a63:0007"
        self.assertEqual(self.said_in_namespace("--net", "new_address"), [[gid], True])

    def test_the_kernels_devices_stay_visible(self):
        self.assertEqual(self.said_in_namespace("--mount", "kernels_device"),
                         {"listed": ["mlx5_0", "softverbs0"], "read": "real\n", "through": "real\n",
                          "path": CLASS + "/mlx5_0", "ours": True, "later": ["mlx5_0", "mlx5_1", "softverbs0"]})


if __name__ == "__main__":
    if sys.argv[1] == "--role":
        print(json.dumps(ROLES[sys.argv[2]]()))
        sys.exit(0)
    BIN, MAP = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
