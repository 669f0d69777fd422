#ifndef GANNET_COMMON_RDMA_DEVICE_CHOICE_H_
#define GANNET_COMMON_RDMA_DEVICE_CHOICE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/device.h"

namespace gannet {

// Implements --device=auto|soft|NAME. A device that is listed does not always work, so a device is
// taken only if it passes a loopback test: it built a queue pair and sent a byte to itself.
//
//   auto   the first device that works, or softverbs if none does
//   soft   softverbs
//   NAME   that device, or an error that lists the devices that exist; never another

// Tests a device. Blocks for at most about two seconds. FailedPrecondition says why the device does
// not work.
absl::Status ProbeDevice(const Device& device);

// Returns the device, or nullopt if it should be softverbs and this process does not run on
// softverbs.
absl::StatusOr<std::optional<Device>> ChooseDevice(std::string_view flag);

// Whether `auto` says on stderr that it took softverbs because no device works. A server should say
// it: on the wrong device it is slow for everybody. A client would repeat it at every call.
enum class SoftverbsNotice : uint8_t { kSaid, kNotSaid };

// Makes the whole choice for a main(). It may execute the program again on softverbs, and then does
// not return. Call it before starting threads, and before doing anything that must not be done
// twice.
absl::StatusOr<Device> UseDevice(std::string_view flag, char** argv,
                                 SoftverbsNotice notice = SoftverbsNotice::kSaid);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_DEVICE_CHOICE_H_
