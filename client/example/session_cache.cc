// Sessions of a web application in Gannet: a session that nobody uses for a while is gone, and one
// request of a user never overwrites what another has just written.
//
//   softverbs-run ./session_cache 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)

#include <gannet/client.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

namespace {

class SessionCache {
 public:
  struct Session {
    std::string data;
    uint64_t version = 0;
  };

  SessionCache(gannet::Client& client, std::chrono::milliseconds idle)
      : client_(client), idle_(idle) {}

  // Returns the name of a new session, which nobody can guess.
  absl::StatusOr<std::string> Begin(const std::string& data) {
    std::random_device random;
    std::string name = "session:";
    for (int i = 0; i < 4; ++i) name += std::to_string(random()) + "-";
    const auto added = client_.Add(name, data, {.ttl = idle_});
    if (!added.ok()) return added.status();
    return name;
  }

  // Reads without prolonging: one READ of the server's memory, and nothing for its CPU to do.
  absl::StatusOr<std::optional<Session>> Peek(const std::string& name) {
    return SessionOf(client_.Get(name));
  }
  // Reads, and lets the session live for the whole idle time again.
  absl::StatusOr<std::optional<Session>> Use(const std::string& name) {
    return SessionOf(client_.GetAndTouch(name, idle_));
  }
  // FailedPrecondition: another request changed the session since. Use it again, and retry.
  absl::Status Change(const std::string& name, const Session& seen, const std::string& data) {
    return client_.Put(name, data, {.ttl = idle_, .only_if_version = seen.version}).status();
  }
  absl::Status End(const std::string& name) { return client_.Delete(name).status(); }

 private:
  static absl::StatusOr<std::optional<Session>> SessionOf(
      absl::StatusOr<std::optional<gannet::Value>> got) {
    if (!got.ok()) return got.status();
    if (!got->has_value()) return std::nullopt;
    return Session{.data = std::move((*got)->data), .version = (*got)->info.version};
  }

  gannet::Client& client_;
  const std::chrono::milliseconds idle_;
};

absl::Status Run(const std::string& server) {
  absl::StatusOr<std::unique_ptr<gannet::Client>> client = gannet::Client::Connect({server});
  if (!client.ok()) return client.status();
  SessionCache sessions(**client, std::chrono::minutes(30));

  const absl::StatusOr<std::string> name = sessions.Begin("alice: empty cart");
  if (!name.ok()) return name.status();
  // Two requests of the same user at once. Both read, then both write.
  const auto first = sessions.Use(*name);
  const auto second = sessions.Use(*name);
  if (!first.ok()) return first.status();
  if (!second.ok()) return second.status();
  if (!first->has_value() || !second->has_value()) return absl::NotFoundError("no session");
  std::cout << (*second)->data << "\n";
  absl::Status changed = sessions.Change(*name, **second, "alice: three apples");
  if (!changed.ok()) return changed;
  changed = sessions.Change(*name, **first, "alice: one pear");
  std::cout << "the other request: " << absl::StatusCodeToString(changed.code()) << "\n";

  const auto now = sessions.Peek(*name);
  if (!now.ok()) return now.status();
  std::cout << (now->has_value() ? (*now)->data : "no session") << "\n";
  if (absl::Status ended = sessions.End(*name); !ended.ok()) return ended;
  const auto after = sessions.Peek(*name);
  if (!after.ok()) return after.status();
  std::cout << (after->has_value() ? (*after)->data : "no session") << "\n";
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: session_cache HOST:PORT\n";
    return 2;
  }
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
