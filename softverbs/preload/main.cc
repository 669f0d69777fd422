// softverbs-run PROGRAM ARGS... runs any RDMA program on softverbs, by preloading the library that
// replaces libibverbs and librdmacm.

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <string>

namespace {

// The codes of env(1) and the shells.
constexpr int kUsageError = 125;
constexpr int kCanNotExecute = 126;
constexpr int kNotFound = 127;

constexpr char kUsage[] =
    "usage: softverbs-run PROGRAM [ARGUMENT...]\n"
    "       softverbs-run --version\n"
    "\n"
    "Runs PROGRAM with softverbs, a user-space RDMA device for the processes of one host, in the\n"
    "place of libibverbs and librdmacm. The device is called softverbs0.\n"
    "SOFTVERBS_DEVICES=2 gives it two devices.\n"
    "SOFTVERBS_VERBOSE=1 in the environment makes it say what it refuses and why.\n";

// Where the library is, relative to this program's own folder: in the build tree, and installed.
constexpr const char* kPlaces[] = {"/../lib/libsoftverbs.so",
                                   "/../" SOFTVERBS_INSTALL_LIBDIR "/libsoftverbs.so"};

// Returns the folder of this program, or an empty text if the kernel does not say.
std::string OwnFolder() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (size < 0) return "";
  const std::string program(path, static_cast<size_t>(size));
  return program.substr(0, program.rfind('/'));
}

// Returns the library's path, or an empty text.
std::string FindLibrary() {
  const std::string folder = OwnFolder();
  for (const char* place : kPlaces) {
    char real[PATH_MAX];
    if (realpath((folder + place).c_str(), real) != nullptr) return real;
  }
  return "";
}

int Fail(int code, const std::string& message) {
  fprintf(stderr, "softverbs-run: %s\n", message.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fputs(kUsage, stderr);
    return kUsageError;
  }
  const std::string first = argv[1];
  if (first == "--help" || first == "-h") {
    fputs(kUsage, stdout);
    return 0;
  }
  if (first == "--version") {
    puts("softverbs " SOFTVERBS_VERSION);
    return 0;
  }
  if (first.starts_with("-")) return Fail(kUsageError, "unknown option " + first + "; see --help");

  if (access("/proc/self/exe", F_OK) != 0) {
    return Fail(kUsageError,
                "/proc is not mounted here, and softverbs needs it (mount -t proc proc /proc)");
  }
  const std::string library = FindLibrary();
  if (library.empty()) {
    return Fail(kUsageError,
                "libsoftverbs.so is neither in ../lib nor in ../" SOFTVERBS_INSTALL_LIBDIR
                " of this program's folder");
  }
  // The dynamic linker splits LD_PRELOAD at colons and at spaces.
  if (library.find_first_of(": ") != std::string::npos) {
    return Fail(kUsageError,
                "can not preload a library with a colon or a space in its path: " + library);
  }
  const char* others = getenv("LD_PRELOAD");
  const std::string preload =
      others != nullptr && *others != '\0' ? library + ":" + others : library;
  setenv("LD_PRELOAD", preload.c_str(), /*replace=*/1);
  execvp(argv[1], argv + 1);
  const int error = errno;
  return Fail(
      error == ENOENT ? kNotFound : kCanNotExecute,
      "can not run " + first + ": " + (error == ENOENT ? "no such program" : strerror(error)));
}
