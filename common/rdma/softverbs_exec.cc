#include "common/rdma/softverbs_exec.h"

#include <infiniband/verbs.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/lost_outputs.h"
#include "common/base/status_macros.h"
#include "common/rdma/device.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

constexpr char kLibraryPath[] = "LD_LIBRARY_PATH";
// Set in the new process, to guard against a loop. Its value is a '=' followed by the old
// LD_LIBRARY_PATH, or empty if that was not set.
constexpr char kGuard[] = "GANNET_SOFTVERBS_EXEC";

absl::StatusOr<std::string> OwnPath() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  if (size < 0) return LastErrnoStatus("cannot read /proc/self/exe");
  return std::string(path, static_cast<size_t>(size));
}

// Returns why there is no softverbs device in the new process.
absl::Status WhyNotOnSoftverbs() {
  const std::unique_ptr<ibv_device*, decltype(&ibv_free_device_list)> list(
      ibv_get_device_list(nullptr), &ibv_free_device_list);
  for (ibv_device** each = list.get(); each != nullptr && *each != nullptr; ++each) {
    if ((*each)->name != kSoftverbsDeviceName) continue;
    ibv_context* const opened = ibv_open_device(*each);
    if (opened == nullptr) return LastErrnoStatus("softverbs cannot open its device");
    ibv_close_device(opened);
    return absl::InternalError("softverbs opens its device, but librdmacm does not list it");
  }
  return absl::FailedPreconditionError(
      "this program started itself again on softverbs, but still has another verbs library: "
      "LD_LIBRARY_PATH has no effect on it (a DT_RPATH or file capabilities?)");
}

}  // namespace

bool RunningOnSoftverbs() {
  return std::ranges::any_of(ListDevices(), [](const ibv_context* verbs) {
    return verbs->device->name == kSoftverbsDeviceName;
  });
}

absl::StatusOr<std::string> FindSoftverbsDirectory(const std::string& program) {
  const std::string prefix = absl::StrCat(program.substr(0, program.rfind('/')), "/../");
  std::string tried;
  for (const char* directory :
       {"lib/softverbs", GANNET_INSTALL_LIBDIR "/gannet/softverbs", "lib/gannet/softverbs"}) {
    const std::string path = absl::StrCat(prefix, directory);
    if (access(absl::StrCat(path, "/libibverbs.so.1").c_str(), R_OK) == 0) {
      char real[PATH_MAX];
      return realpath(path.c_str(), real) != nullptr ? std::string(real) : path;
    }
    absl::StrAppend(&tried, tried.empty() ? "" : ", ", path);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("softverbs is not installed with this program: no libibverbs.so.1 in ", tried));
}

absl::Status ReexecOntoSoftverbs(char** argv) {
  if (std::getenv(kGuard) != nullptr) return WhyNotOnSoftverbs();
  GANNET_ASSIGN_OR_RETURN(const std::string program, OwnPath());
  GANNET_ASSIGN_OR_RETURN(const std::string directory, FindSoftverbsDirectory(program));
  const char* before = std::getenv(kLibraryPath);
  const std::string path = before == nullptr ? directory : absl::StrCat(directory, ":", before);
  setenv(kGuard, before == nullptr ? "" : absl::StrCat("=", before).c_str(), 1);
  setenv(kLibraryPath, path.c_str(), 1);
  const bool survives = EndSurvivingLostOutputs();
  execv(program.c_str(), argv);
  // The file has been replaced since this process began. This one gives the process another name.
  execv("/proc/self/exe", argv);
  const absl::Status status = LastErrnoStatus(absl::StrCat("cannot execute ", program));
  RestoreEnvironmentAfterReexec();
  if (survives) SurviveLostOutputs();
  return status;
}

void RestoreEnvironmentAfterReexec() {
  const char* guard = std::getenv(kGuard);
  if (guard == nullptr) return;
  if (*guard == '=') {
    setenv(kLibraryPath, guard + 1, 1);
  } else {
    unsetenv(kLibraryPath);
  }
  unsetenv(kGuard);
}

}  // namespace gannet
