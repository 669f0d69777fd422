#ifndef SOFTVERBS_PRELOAD_DEVICE_FILES_H_
#define SOFTVERBS_PRELOAD_DEVICE_FILES_H_

#include <string>
#include <vector>

#include "softverbs/base/gid_table.h"

namespace softverbs::preload {

// A file of a device's folder in sysfs.
struct DeviceFile {
  std::string path;     // relative to the folder
  std::string content;  // a line with its end
};

// Returns the files that the kernel has for a device like this one. `gids` are by port, counted
// over all devices. A GID that is not valid is a line of zeros, as in the kernel, but has no files
// in gid_attrs, which the kernel refuses to read.
std::vector<DeviceFile> DeviceFiles(int number, const std::vector<std::vector<Gid>>& gids);

// Returns the name of the network interface that the device stands for, as device/net has it: that
// of the first GID of its first port. Returns an empty text if that has none.
std::string NetworkInterface(const std::vector<Gid>& gids);

}  // namespace softverbs::preload

#endif  // SOFTVERBS_PRELOAD_DEVICE_FILES_H_
