#include "common/rdma/device_choice.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rdma/loopback.h"
#include "common/rdma/softverbs_exec.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

absl::Status CarryByte(const Device& device) {
  const Handle<ibv_pd> pd(ibv_alloc_pd(device.verbs));
  if (pd == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<Loopback> loopback,
                          Loopback::Create(device, {.pd = pd.get(), .depth = 1}));
  return loopback->CarryByte();
}

struct AutoChoice {
  std::optional<Device> device;
  std::string why_not;  // one line per device that was passed over
};

AutoChoice FirstWorkingDevice() {
  AutoChoice choice;
  for (ibv_context* verbs : ListDevices()) {
    absl::StatusOr<Device> device = DescribeDevice(verbs);
    absl::Status status = device.status();
    if (device.ok() && device->kind != DeviceKind::kSoftverbs) status = ProbeDevice(*device);
    if (status.ok()) {
      choice.device = *std::move(device);
      return choice;
    }
    absl::StrAppend(&choice.why_not, verbs->device->name, ": ", std::string(status.message()),
                    "\n");
  }
  return choice;
}

absl::StatusOr<std::optional<Device>> Soft() {
  if (!RunningOnSoftverbs()) return std::nullopt;
  GANNET_ASSIGN_OR_RETURN(Device device, OpenDevice(kSoftverbsDeviceName));
  return device;
}

}  // namespace

absl::Status ProbeDevice(const Device& device) {
  const absl::Status status = CarryByte(device);
  if (status.ok()) return status;
  return absl::FailedPreconditionError(absl::StrCat(
      "RDMA device ", device.name, " is there but does not work: ", std::string(status.message())));
}

absl::StatusOr<std::optional<Device>> ChooseDevice(std::string_view flag) {
  if (flag == "soft" || flag == kSoftverbsDeviceName) return Soft();
  if (flag == "auto") return FirstWorkingDevice().device;
  GANNET_ASSIGN_OR_RETURN(Device device, OpenDevice(flag));
  GANNET_RETURN_IF_ERROR(ProbeDevice(device));
  return device;
}

absl::StatusOr<Device> UseDevice(std::string_view flag, char** argv, SoftverbsNotice notice) {
  std::optional<Device> device;
  std::string why_not;
  if (flag == "auto") {
    AutoChoice choice = FirstWorkingDevice();
    device = std::move(choice.device);
    why_not = std::move(choice.why_not);
  } else {
    GANNET_ASSIGN_OR_RETURN(device, ChooseDevice(flag));
  }
  if (device.has_value()) {
    RestoreEnvironmentAfterReexec();
    return *std::move(device);
  }
  if (flag == "auto" && notice == SoftverbsNotice::kSaid) {
    std::fprintf(stderr,
                 "%sNO USABLE RDMA DEVICE: running on softverbs, the user-space device for one "
                 "host (--device=soft says so without this notice)\n",
                 why_not.c_str());
  }
  return ReexecOntoSoftverbs(argv);
}

}  // namespace gannet
