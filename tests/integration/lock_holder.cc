// A client in its own process, for tests that stop or kill it: lock_holder DEVICE ENDPOINT KEY. It
// prints CONNECTED, and then answers each line of its stdin with one line:
//   lock        LOCKED <version>, of the value that was read together with the lock
//   put VALUE   OK, or the name of the error; the write carries the lock and that version

#include <gannet/client.h>

#include <cstdio>
#include <iostream>
#include <string>

#include "common/rdma/device_choice.h"
#include "tests/client/api/patient_options.h"

namespace gannet {
namespace {

void Say(const std::string& line) { std::cout << line << std::endl; }

std::string NameOf(const absl::Status& status) {
  return status.ok() ? "OK" : absl::StatusCodeToString(status.code());
}

int Main(char** argv) {
  if (auto device = UseDevice(argv[1], argv); !device.ok()) {
    std::cerr << device.status() << std::endl;
    return 1;
  }
  const std::string endpoint = argv[2];
  const std::string key = argv[3];
  auto client = Client::Connect({endpoint}, PatientOptions());
  if (!client.ok()) {
    std::cerr << client.status() << std::endl;
    return 1;
  }
  Say("CONNECTED");
  Client::LockedValue held;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "lock") {
      auto locked = (*client)->LockAndGet(key, std::chrono::seconds(20));
      if (locked.ok()) held = *std::move(locked);
      const uint64_t version = held.value.has_value() ? held.value->info.version : 0;
      Say(locked.ok() ? "LOCKED " + std::to_string(version) : NameOf(locked.status()));
    } else if (line.starts_with("put ")) {
      PutOptions options;
      options.lock = &held.lock;
      options.only_if_version = held.value.has_value() ? held.value->info.version : 0;
      Say(NameOf((*client)->Put(key, line.substr(4), options).status()));
    } else {
      Say("unknown command");
    }
  }
  return 0;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) { return argc == 4 ? gannet::Main(argv) : 2; }
