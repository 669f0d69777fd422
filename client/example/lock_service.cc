// A job that one of several workers may do at a time, with fencing: a worker that was taken for
// dead and wakes up later can do no harm, neither in Gannet nor in another system.
//
//   softverbs-run ./lock_service 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)

#include <gannet/client.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

namespace {

using std::chrono::milliseconds;

// The right to do a job, until Release, the end of the lease, or the end of the client.
struct Turn {
  gannet::Lock lock;
  uint64_t token = 0;    // greater than that of every earlier turn
  uint64_t version = 0;  // of the item that holds the last token
};

class LockService {
 public:
  LockService(gannet::Client& client, std::string job) : client_(client), job_(std::move(job)) {}

  // Waits for the turn at most for `patience`. The server ends it after `lease` if the worker
  // hangs.
  absl::StatusOr<Turn> Acquire(milliseconds patience, milliseconds lease) {
    auto locked = client_.LockAndGet(job_, patience, {.lease = lease});
    if (!locked.ok()) return locked.status();
    Turn turn{.lock = locked->lock};
    if (locked->value.has_value()) {
      turn.token = std::stoull(locked->value->data);
      turn.version = locked->value->info.version;
    }
    const absl::Status counted = Write(turn, turn.token + 1);
    if (!counted.ok()) return counted;
    return turn;
  }
  // A step of the job, in Gannet: it happens only while the turn lasts. Otherwise Aborted.
  absl::Status Confirm(Turn& turn) { return Write(turn, turn.token); }
  absl::Status Release(const Turn& turn) { return client_.Unlock(turn.lock); }

 private:
  absl::Status Write(Turn& turn, uint64_t token) {
    const auto put = client_.Put(job_, std::to_string(token),
                                 {.only_if_version = turn.version, .lock = &turn.lock});
    if (!put.ok()) return put.status();
    turn.token = token;
    turn.version = *put;
    return absl::OkStatus();
  }

  gannet::Client& client_;
  const std::string job_;
};

// Stands for a system that knows nothing of Gannet, as a database. It refuses tokens that are older
// than one that it has seen.
class Ledger {
 public:
  bool Add(uint64_t token) {
    if (token < newest_) return false;
    newest_ = token;
    return true;
  }

 private:
  uint64_t newest_ = 0;
};

absl::Status Run(const std::string& server) {
  auto one = gannet::Client::Connect({server});
  if (!one.ok()) return one.status();
  auto other = gannet::Client::Connect({server});
  if (!other.ok()) return other.status();
  LockService worker(**one, "job:invoices");
  LockService successor(**other, "job:invoices");
  Ledger ledger;

  absl::StatusOr<Turn> turn = worker.Acquire(milliseconds(1000), std::chrono::minutes(1));
  if (!turn.ok()) return turn.status();
  std::cout << "the worker writes: " << (ledger.Add(turn->token) ? "done" : "refused") << "\n";
  const auto too_early = successor.Acquire(milliseconds(10), std::chrono::minutes(1));
  std::cout << "the successor: " << absl::StatusCodeToString(too_early.status().code()) << "\n";

  // The worker hangs. Its lease would end; here an operator ends it at once (kvcli unlock --force).
  if (auto broken = (*other)->BreakLock("job:invoices"); !broken.ok()) return broken.status();
  absl::StatusOr<Turn> next = successor.Acquire(milliseconds(1000), std::chrono::minutes(1));
  if (!next.ok()) return next.status();
  std::cout << "the successor writes: " << (ledger.Add(next->token) ? "done" : "refused") << "\n";

  // The worker wakes up, and believes that it still has the turn.
  std::cout << "the worker in Gannet: " << absl::StatusCodeToString(worker.Confirm(*turn).code())
            << "\n";
  std::cout << "the worker writes: " << (ledger.Add(turn->token) ? "done" : "refused") << "\n";
  return successor.Release(*next);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: lock_service HOST:PORT\n";
    return 2;
  }
  const absl::Status status = Run(argv[1]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
