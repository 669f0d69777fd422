#!/usr/bin/python3
"""Functions of libibverbs and librdmacm that programs need or look up: symbols_test.py BIN_DIR LIST

LIST is rdma_core.symbols: what rdma-core exports, by version. BIN_DIR has softverbs-run; the libraries are in ../lib.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIMIT_S = 60
CANNOT_LINK = 127
PRIVATE = "IBVERBS_PRIVATE_"
OF_C_LIBRARY = {"readlink", "readlinkat", "realpath"}

# Looks for the device in three ways, as NCCL, Mooncake and plug-ins do.
LOOKS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static int count(void* found) { int n = -1; if (found) ((void** (*)(int*))found)(&n); return n; }
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    void* library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) { puts(dlerror()); return 1; }
    printf("%d %d %d %d\n", count(dlsym(library, "ibv_get_device_list")),
           count(dlvsym(library, "ibv_get_device_list", "IBVERBS_1.1")),
           count(dlsym(RTLD_DEFAULT, "ibv_get_device_list")),
           dlvsym(library, "ibv_of_tomorrow", "IBVERBS_9.9") != NULL);
    if (dlclose(library)) return 2;
  }
  return !dlvsym(RTLD_DEFAULT, "realpath", "GLIBC_2.3");  // others' versions are looked up as ever
}
"""

# Opens a library.
OPENS = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  void* library = dlopen(argv[1], RTLD_LAZY);
  puts(library ? "opened" : dlerror());
  return !library;
}
"""

# Opens each library in a namespace of its own, more often than there are namespaces. The first must have the device.
OPENS_IN_NAMESPACES = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  for (int i = 0; i < 20; ++i) {
    void* library = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) { puts(dlerror()); return 1; }
    int (*look)(void) = (int (*)(void))dlsym(library, argv[2]);
    if (i == 0 && look) printf("%d\n", look());
    if (dlclose(library)) return 2;
  }
  return 0;
}
"""

# A plug-in that is linked with the libraries: connects two queue pairs of its own, and sends by a thread that sleeps.
PLUGIN = r"""
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <string.h>
static char memory[128];
static void* wait_for(void* channel) {
  struct ibv_cq* cq; void* context;
  return (void*)(long)ibv_get_cq_event(channel, &cq, &context);
}
int look(void) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  if (count != 1 || strcmp(ibv_get_device_name(devices[0]), "softverbs0")) return -1;
  struct ibv_context* device = ibv_open_device(devices[0]);
  struct ibv_pd* pd = ibv_alloc_pd(device);
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
  struct ibv_comp_channel* channel = ibv_create_comp_channel(device);
  struct ibv_cq* cq = ibv_create_cq(device, 4, 0, channel, 0);
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {2, 2, 1, 1, 0}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)) return -2;
  attr.qp_state = IBV_QPS_RTR;
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE)) return -3;
  attr.qp_state = IBV_QPS_RTS;
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN)) return -4;
  struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
  if (ibv_query_gid(device, 1, 0, &to.grh.dgid)) return -5;
  struct ibv_ah* ah = ibv_create_ah(pd, &to);
  struct ibv_sge sge = {(uintptr_t)memory, sizeof(memory), mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
  if (ibv_post_recv(qp, &receive, &bad_receive)) return -6;
  ibv_req_notify_cq(cq, 0);
  pthread_t thread;
  pthread_create(&thread, 0, wait_for, channel);
  sge.length = 8;
  struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = {ah, qp->qp_num, 1}}, *bad_send;
  if (ibv_post_send(qp, &send, &bad_send)) return -7;
  void* failed = 0;
  pthread_join(thread, &failed);
  struct ibv_wc wc;
  if (failed || ibv_poll_cq(cq, 1, &wc) != 1 || wc.status || wc.byte_len != 48) return -8;
  struct rdma_event_channel* events = rdma_create_event_channel();
  if (!events) return -9;
  rdma_destroy_event_channel(events);
  ibv_ack_cq_events(cq, 1);
  return ibv_destroy_ah(ah) || ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_destroy_comp_channel(channel) ||
         ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || ibv_close_device(device);
}
"""

# A libibverbs of tomorrow, and who needs it.
TOMORROW = "int ibv_get_device_list; void ibv_of_tomorrow(void) {} void verbs_of_drivers(void) {}"
TOMORROWS_MAP = """
IBVERBS_1.1 { global: ibv_get_device_list; local: *; };
IBVERBS_9.9 { global: ibv_of_tomorrow; } IBVERBS_1.1;
IBVERBS_PRIVATE_99 { global: verbs_of_drivers; };
"""
NEEDS = "void ibv_of_tomorrow(void); void unused(void) { ibv_of_tomorrow(); }"
NEEDS_WEAKLY = ("#pragma weak ibv_of_tomorrow\nvoid ibv_of_tomorrow(void); "
                "void* unused(void) { return (void*)ibv_of_tomorrow; }")
IS_A_DRIVER = NEEDS + "void verbs_of_drivers(void); void unused_too(void) { verbs_of_drivers(); }"
MAIN = '\n#include <stdio.h>\nint main(void) { puts("main"); return 0; }'


class SymbolsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def compile(self, name, source, *options):
        """Returns the path of a program, or with -shared of a library."""
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        subprocess.run(["gcc", "-w", "-fPIC", "-x", "c", "-", "-x", "none", "-o", self.path(name), "-Wl,--no-as-needed", *options],
                       input=source, text=True, check=True, timeout=LIMIT_S)
        return self.path(name)

    def compile_tomorrow(self):
        with open(self.path("map"), "w", encoding="ascii") as file:
            file.write(TOMORROWS_MAP)
        self.compile("real/libibverbs.so.1", TOMORROW, "-shared", "-Wl,-soname,libibverbs.so.1",
                     f"-Wl,--version-script={self.path('map')}")
        return self.path("real/libibverbs.so.1")

    def run_on(self, *command, **environment):
        return subprocess.run([os.path.join(BIN, "softverbs-run"), *command], env=os.environ | environment,
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def expect_ended(self, done, by):
        self.assertEqual((done.returncode, done.stdout), (CANNOT_LINK, ""), done.stderr)
        self.assertRegex(done.stderr, rf"^softverbs: \S*{by} needs ibv_of_tomorrow \(IBVERBS_9\.9\), which softverbs .* does not "
                         r"have: .*\n$")

    def expect_said(self, done, *lines):
        self.assertEqual((done.returncode, done.stderr, done.stdout.split("\n")[:-1]), (0, "", list(lines)))

    # --- What is exported

    def exported(self, library):
        """Returns the (name, version) of all functions of the two libraries; without versions, as None."""
        listed = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", os.path.join(BIN, "..", "lib", library)],
                                check=True, capture_output=True, text=True, timeout=LIMIT_S).stdout
        ours = re.compile(r"_?ibv_|rdma_|mbps_to_ibv|mult_to_ibv|r[a-z_]+$")
        pairs = re.findall(r" [TW] (\w+)(?:@@?(\S+))?$", listed, re.MULTILINE)
        return {(name, version or None) for name, version in pairs if ours.match(name) and name not in OF_C_LIBRARY}

    def test_the_libraries_export_what_rdma_core_exports(self):
        with open(LIST, encoding="ascii") as file:
            listed = {line.strip() for line in file if not line.startswith("#")}
        self.assertGreater(len(listed), 100)
        versioned = self.exported("softverbs/libibverbs.so.1")
        self.assertEqual({f"{version} {name}" for name, version in versioned if not version.startswith(PRIVATE)}, listed)
        self.assertEqual(self.exported("libsoftverbs.so"), {(name, None) for name, version in versioned})

    # --- Programs that load the libraries as they run

    def test_a_library_that_is_opened_has_the_device(self):
        program = self.compile("looks", LOOKS, "-ldl")
        names = ["libibverbs.so.1", "libibverbs.so", "librdmacm.so.1", "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"]
        self.expect_said(self.run_on(program, *names), *["1 1 1 0"] * len(names))

    def test_python_opens_it(self):
        program = ("import ctypes; n = ctypes.c_int(-1); ctypes.CDLL('libibverbs.so.1').ibv_get_device_list(ctypes.byref(n)); "
                   "print(n.value)")
        self.expect_said(self.run_on("/usr/bin/python3", "-c", program), "1")

    def test_a_program_that_is_linked_and_opens_has_one_device(self):
        program = ("import ctypes, pyverbs.device as d; c = d.Context(name='softverbs0'); l = ctypes.CDLL('libibverbs.so.1'); "
                   "f = l.ibv_get_device_name; f.restype = ctypes.c_char_p; l.ibv_get_device_list.restype = ctypes.c_void_p; "
                   "n = ctypes.c_int(); p = l.ibv_get_device_list(ctypes.byref(n)); "
                   "print(f(ctypes.c_void_p(ctypes.c_void_p.from_address(p).value)).decode(), c.name)")
        self.expect_said(self.run_on("/usr/bin/python3", "-c", program), "softverbs0 softverbs0")

    def test_a_plugin_in_a_namespace_of_its_own_has_the_device(self):
        plugin = self.compile("libplugin.so", PLUGIN, "-shared", "-libverbs", "-lrdmacm")
        program = self.compile("opens", OPENS_IN_NAMESPACES, "-ldl")
        self.expect_said(self.run_on(program, plugin, "look"), "0")
        self.expect_said(self.run_on(program, plugin, "look", LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu"), "0")

    def test_a_plugin_may_be_closed_that_was_linked_with_the_drop_in_library(self):
        plugin = self.compile("libplugin.so", PLUGIN, "-shared", "-libverbs", "-lrdmacm")
        program = self.compile("opens", OPENS_IN_NAMESPACES.replace("dlmopen(LM_ID_NEWLM, ", "dlopen("), "-ldl")
        done = subprocess.run([program, plugin, "look"], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                              env=os.environ | {"LD_LIBRARY_PATH": os.path.join(BIN, "..", "lib", "softverbs")})
        self.expect_said(done, "0")

    def test_the_libraries_are_opened_in_namespaces(self):
        source = OPENS_IN_NAMESPACES.replace("look()", '((void*(*)(int*))look)(&(int){0}) != NULL')
        program = self.compile("opens", source, "-ldl")
        for name in ("libibverbs.so.1", "librdmacm.so.1", "/usr/lib/x86_64-linux-gnu/libibverbs.so"):
            self.expect_said(self.run_on(program, name, "ibv_get_device_list"), "1")

    def test_a_library_without_rdma_is_opened_in_namespaces(self):
        self.compile("beside/libbeside.so", "int look(void) { return 42; }", "-shared")
        program = self.compile("opens", OPENS_IN_NAMESPACES, "-ldl", "-Wl,-rpath,$ORIGIN/beside")
        for path in (self.path("beside/libbeside.so"), "libbeside.so", "$ORIGIN/beside/libbeside.so"):
            self.expect_said(self.run_on(program, path, "look"), "42")

    def test_where_the_search_cannot_be_told_the_c_library_searches(self):
        self.compile("beside/libbeside.so", "int look(void) { return 42; }", "-shared")
        os.mkdir(self.path("beside", "glibc-hwcaps"))
        for source, lines in {OPENS: ["opened"], OPENS_IN_NAMESPACES: ["42"]}.items():
            program = self.compile("opens", source, "-ldl", "-Wl,-rpath,$ORIGIN/beside")
            self.expect_said(self.run_on(program, "libbeside.so", "look"), *lines)

    def test_without_the_drop_in_directory_dlmopen_says_so(self):
        shutil.copy(os.path.join(BIN, "..", "lib", "libsoftverbs.so"), self.folder)
        plugin = self.compile("libplugin.so", "int look(void) { return 42; }", "-shared")
        program = self.compile("opens", OPENS_IN_NAMESPACES.replace("i < 20", "i < 1"), "-ldl")
        done = subprocess.run([program, plugin, "look"], env=os.environ | {"LD_PRELOAD": self.path("libsoftverbs.so")},
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "42\n"))
        self.assertRegex(done.stderr, r"^softverbs: dlmopen of \S*libplugin.so gets no softverbs: .*libsoftverbs-names.so: cannot open .*\n$")

    def test_a_plugin_that_needs_more_is_not_opened_in_a_namespace(self):
        plugin = self.compile("libplugin.so", NEEDS, "-shared", self.compile_tomorrow())
        done = self.run_on(self.compile("opens", OPENS_IN_NAMESPACES, "-ldl"), plugin, "look")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("version `IBVERBS_9.9' not found", done.stdout)

    def test_a_library_is_found_by_the_search_path_of_who_opens_it(self):
        self.compile("beside/libbeside.so", "int beside;", "-shared")
        for option in ("-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags"):
            program = self.compile("opens", OPENS, "-ldl", option, "-Wl,-rpath,$ORIGIN/beside")
            for path in ("libbeside.so", "$ORIGIN/beside/libbeside.so", "${ORIGIN}/beside/libbeside.so", "libz.so.1"):
                self.expect_said(self.run_on(program, path), "opened")
            done = self.run_on(program, "libnowhere.so")
            self.assertEqual(done.returncode, 1)
            self.assertIn("libnowhere.so: cannot open shared object file", done.stdout)

    # --- Programs that need what is not there

    def test_a_program_that_needs_more_is_ended_when_it_starts(self):
        real = self.compile_tomorrow()
        for kind, source in {"strong": NEEDS, "weak": NEEDS_WEAKLY}.items():
            program = self.compile(kind, source + MAIN, real)
            self.expect_ended(self.run_on(program, LD_LIBRARY_PATH=os.path.dirname(real)), kind)

    def test_a_library_that_needs_more_ends_the_program_when_it_is_opened(self):
        real = self.compile_tomorrow()
        plugin = self.compile("libplugin.so", NEEDS, "-shared", real)
        done = self.run_on(self.compile("opens", OPENS, "-ldl"), plugin, LD_LIBRARY_PATH=os.path.dirname(real))
        self.expect_ended(done, "libplugin.so")

    def test_so_does_one_that_is_found_by_the_search_path_of_who_opens_it(self):
        real = self.compile_tomorrow()
        self.compile("beside/libplugin.so", NEEDS, "-shared", real)
        program = self.compile("opens", OPENS, "-ldl", "-Wl,-rpath,$ORIGIN/beside")
        for path in ("libplugin.so", "$ORIGIN/beside/libplugin.so"):
            self.expect_ended(self.run_on(program, path, LD_LIBRARY_PATH=os.path.dirname(real)), "libplugin.so")

    def test_a_driver_may_need_more(self):
        real = self.compile_tomorrow()
        driver = self.compile("libdriver.so", IS_A_DRIVER, "-shared", real)
        program = self.compile("program", MAIN, driver, real)
        self.expect_said(self.run_on(program, LD_LIBRARY_PATH=os.path.dirname(real) + ":" + self.folder), "main")

    def test_the_drop_in_library_names_what_it_lacks(self):
        program = self.compile("strong", NEEDS + MAIN, self.compile_tomorrow())
        done = subprocess.run([program], env=os.environ | {"LD_LIBRARY_PATH": os.path.join(BIN, "..", "lib", "softverbs")},
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("version `IBVERBS_9.9' not found", done.stderr)


if __name__ == "__main__":
    BIN, LIST = (os.path.abspath(each) for each in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
