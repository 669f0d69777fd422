// Gannet in one page: put, get, and a read-modify-write under a lock.
//
//   softverbs-run ./read_modify_write 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)

#include <gannet/client.h>

#include <iostream>
#include <string>

namespace {

// Adds one to a number in the store. The write carries the lock and the version that was read under
// it. If this client was too slow and another took the lock meanwhile, the server refuses the
// write.
absl::Status Increment(gannet::Client& client, const std::string& key) {
  absl::StatusOr<gannet::Client::LockedValue> locked = client.LockAndGet(key);
  if (!locked.ok()) return locked.status();
  const uint64_t version = locked->value.has_value() ? locked->value->info.version : 0;
  const int number = locked->value.has_value() ? std::stoi(locked->value->data) : 0;
  const absl::StatusOr<uint64_t> put = client.Put(
      key, std::to_string(number + 1), {.only_if_version = version, .lock = &locked->lock});
  const absl::Status unlocked = client.Unlock(locked->lock);
  return put.ok() ? unlocked : put.status();
}

absl::Status Run(const std::string& server) {
  absl::StatusOr<std::unique_ptr<gannet::Client>> client = gannet::Client::Connect({server});
  if (!client.ok()) return client.status();

  absl::StatusOr<uint64_t> version = (*client)->Put("greeting", "hello");
  if (!version.ok()) return version.status();
  absl::StatusOr<std::optional<gannet::Value>> value = (*client)->Get("greeting");
  if (!value.ok()) return value.status();
  std::cout << "greeting = " << (value->has_value() ? (*value)->data : "(absent)") << "\n";

  for (int i = 0; i < 3; ++i) {
    if (absl::Status status = Increment(**client, "visits"); !status.ok()) return status;
  }
  value = (*client)->Get("visits");
  if (!value.ok()) return value.status();
  std::cout << "visits = " << (value->has_value() ? (*value)->data : "(absent)") << "\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: read_modify_write HOST:PORT\n";
    return 2;
  }
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
