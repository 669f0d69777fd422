// Measures what bare verbs on softverbs reach with the round trips and copies of a store's
// operations on long values, and prints JSON. The store's figures are compared with this floor.
//
//   read       READs --size bytes, in chains of --depth
//   confirmed  the same, and when a chain is done READs 8 bytes of each of these places: a GET of a
//              large item whose head is known
//   checked    the same as read, and computes XXH3 of each value
//   fetched    SENDs 64 bytes; the peer READs --size bytes, then SENDs 64: a PUT whose value the
//              server fetches
//   carried    SENDs 64 + --size bytes; the peer copies the value and SENDs 64: a PUT whose value
//              comes with the request
//   written    WRITEs --size bytes and SENDs 64; the peer SENDs 64: a PUT into a place that the
//              reply before lent to the client
//   asked      SENDs 64 bytes; the peer SENDs 64: a request and its answer, without a value
//
// Two processes, both poll. Nanoseconds an operation; kinds take turns, and the fastest of --runs
// counts. Runs are short, so that some of them have the cores for themselves on a busy machine.

#include <gflags/gflags.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/align.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/rdma/address.h"
#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/device.h"
#include "common/rdma/listener.h"
#include "common/rdma/memory.h"
#include "common/rdma/softverbs_exec.h"

DEFINE_uint32(size, 4096, "bytes of a value");
DEFINE_uint32(depth, 16, "operations in flight, at most 64");
DEFINE_uint32(places, 2000, "number of values in the peer's memory, of which random ones are used");
DEFINE_uint32(operations, 40'000, "operations in a run");
DEFINE_uint32(runs, 20, "runs of each kind, of which the fastest counts");

namespace gannet {
namespace {

constexpr uint32_t kMessage = 64;
constexpr uint32_t kDepthMax = 64;
constexpr int kEmptyPollsMax = 64;  // then others get the core
constexpr int64_t kPatienceNs = 60 * kNsPerSecond;
enum class How : uint8_t { kFetched, kCarried, kWritten, kAsked };
enum Work : uint8_t { kReceive = 1, kSend, kRead };

struct FloorMessage {
  uint64_t place;    // offset in the peer's memory
  uint64_t address;  // of the value in the sender's memory, if it is fetched
  uint32_t rkey;
  How how;
  uint8_t unused[43];
};
static_assert(sizeof(FloorMessage) == kMessage);

struct Region {  // what the peer says of its memory
  uint64_t address;
  uint32_t rkey;
};

template <class T>
T Must(absl::StatusOr<T> result) {
  GANNET_CHECK(result.ok(), result.status().ToString().c_str());
  return *std::move(result);
}
void Must(bool posted) { GANNET_CHECK(posted, "the device refused"); }

uint32_t MessageBytes() { return kMessage + FLAGS_size; }
// A value begins behind 64 bytes, of which the first 8 are READ again.
uint64_t PlaceBytes() { return AlignUp(kMessage + FLAGS_size, 512); }

// One end: a queue pair, its memory, and its message buffers. Sends of a Poll share a doorbell.
class End {
 public:
  void Open(ibv_context* verbs, uint64_t memory_bytes) {
    device_ = Must(DescribeDevice(verbs));
    pd_.reset(ibv_alloc_pd(verbs));
    queue_ = Must(CompletionQueue::Create(verbs, 8 * kDepthMax, false));
    // Shared memory, so that softverbs copies without the peer's CPU.
    memory_.shared_memory =
        Must(SharedMemory::Create({.name = "floor", .bytes = memory_bytes, .remote_write = true}));
    memory_.bytes = memory_.shared_memory->bytes();
    memory_.mr = Must(RegisterMemory(pd_.get(), memory_.bytes, RemoteAccess::kReadWrite));
    messages_ = Must(RegisteredBuffer::Create(pd_.get(), 2 * kDepthMax * uint64_t{MessageBytes()}));
  }
  ConnectionOptions connection_options() const {
    return {.queue_pair = {.pd = pd_.get(), .send_wrs = 4 * kDepthMax},
            .caps = device_.caps,
            .completions = queue_.get(),
            .receives = {.first = messages_.Sge(0, MessageBytes()),
                         .count = kDepthMax,
                         .id = {.kind = kReceive}}};
  }
  void Use(Connection* connection) { connection_ = connection; }

  // Adds to the chain. REQUIRES: fewer than 2 kDepthMax in it.
  void Add(ibv_send_wr request, const ibv_sge& sge, bool signaled) {
    sges_[chained_] = sge;
    request.sg_list = &sges_[chained_];
    request.num_sge = 1;
    if (signaled) request.send_flags |= IBV_SEND_SIGNALED;
    if (chained_ > 0) chain_[chained_ - 1].next = &chain_[chained_];
    chain_[chained_++] = request;
  }
  void Post() {
    if (chained_ == 0) return;
    chained_ = 0;
    Must(PostSend(connection_->qp(), chain_.data()) == PostResult::kPosted);
  }
  // Sends a message that was written to the slot's place. Every 16th is signaled.
  void Send(uint32_t slot, uint32_t bytes) {
    Add(SendRequest(WrId{.kind = kSend}.Pack(), nullptr, 0),
        messages_.Sge((kDepthMax + slot) * uint64_t{MessageBytes()}, bytes), ++sends_ % 16 == 0);
  }
  void Receive(uint32_t slot) {
    connection_->Recycle(slot);
    Must(connection_->PostReceives());
  }
  std::byte* received(uint32_t slot) const {
    return messages_.data() + slot * uint64_t{MessageBytes()};
  }
  std::byte* to_send(uint32_t slot) const { return received(kDepthMax + slot); }

  // Calls on(kind, slot) for what completed. Returns false if the connection was closed.
  template <class F>
  bool Poll(F on) {
    std::array<ibv_wc, 32> done;
    const size_t n = queue_->Poll(done);
    if (n == 0 && ++empty_polls_ % kEmptyPollsMax == 0) sched_yield();
    for (size_t i = 0; i < n; ++i) {
      if (done[i].status != IBV_WC_SUCCESS) return false;
      const WrId id = WrId::Unpack(done[i].wr_id);
      on(static_cast<Work>(id.kind), id.slot);
    }
    return true;
  }
  void Close() { DrainAll(queue_.get(), {&connection_, 1}, kPatienceNs); }

  RegisteredBuffer& memory() { return memory_; }

 private:
  Device device_;
  Handle<ibv_pd> pd_;
  std::unique_ptr<CompletionQueue> queue_;
  RegisteredBuffer memory_;
  RegisteredBuffer messages_;
  Connection* connection_ = nullptr;
  std::array<ibv_send_wr, 2 * kDepthMax> chain_{};
  std::array<ibv_sge, 2 * kDepthMax> sges_{};
  uint32_t chained_ = 0;
  uint32_t sends_ = 0;
  int empty_polls_ = 0;
};

// --- the peer that serves

void Serve(int port_pipe) {
  const auto listener = Must(Listener::Create(Must(Resolve("127.0.0.1:0", 0))));
  const uint16_t port = listener->address().port();
  Must(write(port_pipe, &port, sizeof(port)) == sizeof(port));
  End end;
  std::unique_ptr<Connection> connection;
  while (connection == nullptr) {
    auto event = listener->Poll();
    if (!event || event->type != ListenerEvent::Type::kRequest) continue;
    end.Open(event->request->verbs(), FLAGS_places * PlaceBytes());
    connection =
        Must(listener->BeginAccept(*std::move(event->request), end.connection_options(), 1));
    end.Use(connection.get());
    const Region region{end.memory().address(), end.memory().rkey()};
    Must(
        listener
            ->FinishAccept(connection.get(), std::as_bytes(std::span(&region, 1)), PeerRights::kAll)
            .ok());
  }
  bool open = true;
  while (open) {
    open = end.Poll([&](Work work, uint32_t slot) {
      if (work == kReceive) {
        FloorMessage message;
        std::memcpy(&message, end.received(slot), sizeof(message));
        std::memcpy(end.to_send(slot), &message, sizeof(message));
        if (message.how == How::kFetched) {
          return end.Add(ReadRequest(WrId{.kind = kRead, .slot = slot}.Pack(), nullptr,
                                     message.address, message.rkey, 0),
                         end.memory().Sge(message.place + kMessage, FLAGS_size), true);
        }
        if (message.how == How::kCarried) {
          std::memcpy(end.memory().data() + message.place + kMessage, end.received(slot) + kMessage,
                      FLAGS_size);
        }
        end.Send(slot, kMessage);
        end.Receive(slot);
      } else if (work == kRead) {
        end.Send(slot, kMessage);
        end.Receive(slot);
      }
    });
    end.Post();
  }
  end.Close();
}

// --- the peer that measures

class FloorClient {
 public:
  explicit FloorClient(uint16_t port) {
    SocketAddress to = Must(Resolve("127.0.0.1:0", 0));
    to.set_port(port);
    connector_ = Must(Connector::Start({.to = to, .deadline_ns = MonotonicNs() + kPatienceNs}));
    while (connector_->Poll(MonotonicNs()) == Connector::Step::kResolving) sched_yield();
    end_.Open(connector_->verbs(), kDepthMax * PlaceBytes());
    Must(connector_->CreateConnection(end_.connection_options()).ok());
    end_.Use(connector_->connection());
    Must(connector_->Connect({}).ok());
    while (connector_->Poll(MonotonicNs()) == Connector::Step::kConnecting) sched_yield();
    GANNET_CHECK(connector_->step() == Connector::Step::kEstablished, "not connected");
    std::memcpy(&region_, connector_->private_data().data(), sizeof(region_));
  }
  ~FloorClient() { end_.Close(); }

  // READs, in chains. Returns nanoseconds an operation.
  double Read(bool confirm, bool check) {
    const uint32_t depth = FLAGS_depth;
    const uint32_t chains = FLAGS_operations / depth;
    std::vector<uint64_t> places(depth);
    const int64_t began_ns = MonotonicNs();
    for (uint32_t chain = 0; chain < chains; ++chain) {
      for (uint32_t i = 0; i < depth; ++i) {
        places[i] = NextPlace();
        AddRead(places[i] + kMessage, i * PlaceBytes() + kMessage, FLAGS_size, i + 1 == depth);
      }
      PostAndWait();
      for (uint32_t i = 0; check && i < depth; ++i) {
        sum_ ^= Xxh3Unseeded(end_.memory().data() + i * PlaceBytes() + kMessage, FLAGS_size);
      }
      if (!confirm) continue;
      for (uint32_t i = 0; i < depth; ++i) {
        AddRead(places[i], i * PlaceBytes(), sizeof(uint64_t), i + 1 == depth);
      }
      PostAndWait();
    }
    return static_cast<double>(MonotonicNs() - began_ns) / (chains * depth);
  }

  // Messages that are answered.
  double Put(How how) {
    uint32_t left = FLAGS_operations;
    uint32_t unanswered = FLAGS_depth;
    const int64_t began_ns = MonotonicNs();
    for (uint32_t slot = 0; slot < FLAGS_depth; ++slot) SendPut(slot, how);
    end_.Post();
    left -= FLAGS_depth;
    while (unanswered > 0) {
      const bool open = end_.Poll([&](Work work, uint32_t slot) {
        if (work != kReceive) return;
        end_.Receive(slot);
        if (left == 0) {
          --unanswered;
          return;
        }
        --left;
        SendPut(next_slot_++ % FLAGS_depth, how);
      });
      GANNET_CHECK(open, "the peer is gone");
      end_.Post();
    }
    return static_cast<double>(MonotonicNs() - began_ns) / FLAGS_operations;
  }

  uint64_t sum() const { return sum_; }

 private:
  uint64_t NextPlace() {
    state_ = Mix64(state_ + 0x9e3779b97f4a7c15);
    return state_ % FLAGS_places * PlaceBytes();
  }
  void AddRead(uint64_t place, uint64_t at, uint32_t bytes, bool last) {
    end_.Add(
        ReadRequest(WrId{.kind = kRead}.Pack(), nullptr, region_.address + place, region_.rkey, 0),
        end_.memory().Sge(at, bytes), last);
  }
  void PostAndWait() {
    end_.Post();
    bool done = false;
    while (!done) {
      const bool open = end_.Poll([&](Work work, uint32_t) { done |= work == kRead; });
      GANNET_CHECK(open, "the peer is gone");
    }
  }
  void SendPut(uint32_t slot, How how) {
    const uint64_t value = slot * PlaceBytes() + kMessage;
    FloorMessage message{.place = NextPlace(), .how = how};
    if (how == How::kFetched) {
      message.address = end_.memory().address() + value;
      message.rkey = end_.memory().rkey();
    } else if (how == How::kWritten) {
      ibv_send_wr write = MakeRequest(IBV_WR_RDMA_WRITE, WrId{.kind = kSend}.Pack(), nullptr, 0);
      write.wr.rdma = {region_.address + message.place + kMessage, region_.rkey};
      end_.Add(write, end_.memory().Sge(value, FLAGS_size), false);
    }
    std::memcpy(end_.to_send(slot), &message, sizeof(message));
    if (how == How::kCarried) {
      std::memcpy(end_.to_send(slot) + kMessage, end_.memory().data() + value, FLAGS_size);
    }
    end_.Send(slot, kMessage + (how == How::kCarried ? FLAGS_size : 0));
  }

  End end_;
  std::unique_ptr<Connector> connector_;  // its queue pair goes before the queue of completions
  Region region_{};
  uint64_t state_ = 1;
  uint64_t sum_ = 0;
  uint32_t next_slot_ = 0;
};

void Measure(uint16_t port) {
  FloorClient client(port);
  std::map<std::string, double> best;
  const auto note = [&best](const char* kind, double ns) {
    auto [it, added] = best.try_emplace(kind, ns);
    it->second = std::min(it->second, ns);
  };
  for (uint32_t run = 0; run < FLAGS_runs; ++run) {
    note("read", client.Read(false, false));
    note("confirmed", client.Read(true, false));
    note("checked", client.Read(false, true));
    note("fetched", client.Put(How::kFetched));
    note("carried", client.Put(How::kCarried));
    note("written", client.Put(How::kWritten));
    note("asked", client.Put(How::kAsked));
  }
  nlohmann::ordered_json report{{"size", FLAGS_size}, {"depth", FLAGS_depth}};
  for (const auto& [kind, ns] : best) {
    report[kind] = {{"ns", ns}, {"share_of_read", best["read"] / ns}};
  }
  printf("%s\n", report.dump(2).c_str());
}

int Run(char** argv) {
  if (!RunningOnSoftverbs()) {
    fprintf(stderr, "%s\n", ReexecOntoSoftverbs(argv).ToString().c_str());
    return 1;
  }
  RestoreEnvironmentAfterReexec();
  GANNET_CHECK(FLAGS_depth > 0 && FLAGS_depth <= kDepthMax && FLAGS_operations >= FLAGS_depth,
               "--depth is 1 to 64, and --operations at least as many");
  int port_pipe[2];
  Must(pipe(port_pipe) == 0);
  const pid_t peer = fork();
  if (peer == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // it polls, and would for ever
    Serve(port_pipe[1]);
    _exit(0);
  }
  uint16_t port = 0;
  Must(read(port_pipe[0], &port, sizeof(port)) == sizeof(port));
  Measure(port);
  kill(peer, SIGKILL);  // it polls, and hears of no disconnect
  waitpid(peer, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  gflags::SetUsageMessage("verbs_floor [--size=BYTES]: prints the times of bare verbs as JSON");
  gflags::ParseCommandLineFlags(&argc, &argv, false);
  return gannet::Run(argv);
}
