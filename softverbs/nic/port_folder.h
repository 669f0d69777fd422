#ifndef SOFTVERBS_NIC_PORT_FOLDER_H_
#define SOFTVERBS_NIC_PORT_FOLDER_H_

#include <string>

#include "softverbs/base/unique_fd.h"

namespace softverbs {

class Ports;

// SOFTVERBS_PORTS: a folder by which others take down the ports of this process while it runs. A
// file `1.down` in it takes down the port of device 1 for as long as it is there, and `1.dead`
// kills the device. A file is there or not, so nothing half written is read. What the files say is
// done in their order as long as this process keeps up. Afterwards it is as they are.
class PortFolder {
 public:
  explicit PortFolder(Ports* ports) : ports_(ports) {}

  // Does what the folder says, from now on. Ends the process with status 2 if there is no such
  // folder: silently running without faults would be worse. Does nothing without SOFTVERBS_PORTS,
  // and in a simulation, whose steps no file may change.
  void Follow();

 private:
  void OnChange();
  void Obey();
  bool Has(int number, const char* what) const;

  Ports* const ports_;
  std::string path_;
  UniqueFd changes_;  // inotify
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PORT_FOLDER_H_
