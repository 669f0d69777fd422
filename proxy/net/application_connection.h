#ifndef GANNET_PROXY_NET_APPLICATION_CONNECTION_H_
#define GANNET_PROXY_NET_APPLICATION_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "proxy/jobs/job.h"
#include "proxy/jobs/store_queue.h"
#include "proxy/net/output.h"
#include "proxy/protocol/protocol.h"

namespace gannet::proxy {

// Jobs that are kept for other commands, so that a command allocates little.
class JobPool {
 public:
  ~JobPool();
  Job* Take();
  void Give(Job* job);

  ParsedCommand parsed;  // for whoever parses: its words may take a MiB, and are needed once

 private:
  static constexpr size_t kKept = 1024;
  static constexpr size_t kKeptWithLongBuffers = 32;
  std::vector<Job*> free_;
};

// One application's connection. Bytes become jobs, many of which may be under way, and their
// replies go out in the order of the commands.
//
// 1. Jobs begin in the order of their commands. If one must not overtake another (Access), it
//    waits, and so do all behind it.
// 2. It asks for memory before it reads, before it begins a command, and a job asks before it READs
//    a value (Holder). If there is none, they wait. So an application that does not read its
//    replies is held back once --buffers is used up, and not before: many libraries send a whole
//    pipeline before they read.
// 3. It reads no more while as many jobs are under way as there may be.
//
// One owner thread.
class ApplicationConnection {
 public:
  struct Place {
    StoreQueue* store;
    Memory* memory;
    Holder* orphans;  // of jobs whose connection is closed
    JobPool* pool;
    const Service* service;
    Counters* counters;
    int epoll;
  };
  // Takes the descriptor, which is in no epoll yet.
  ApplicationConnection(int fd, uint64_t id, Protocol protocol, const Place& place);
  ~ApplicationConnection();
  ApplicationConnection(const ApplicationConnection&) = delete;
  ApplicationConnection& operator=(const ApplicationConnection&) = delete;

  // Call it when the descriptor is readable, or its other end was closed.
  void Read(int64_t now_ms);
  // Begins commands, sends replies, and says what to wait for. Returns false if the connection is
  // over.
  bool Advance(int64_t now_ms);
  // Call it when both directions of the socket are closed: nobody would get the answers.
  void Break() { broken_ = true; }
  // Call it when a job of this connection is finished.
  void OnFinished(Job& job);

  uint64_t id() const { return client_.id; }
  // Returns whether it wants to read, and there is no memory for that.
  bool hungry() const { return hungry_; }
  const Holder& holder() const { return holder_; }
  // Returns whether it holds memory for an application that has sent and read nothing for so long.
  bool IsIdle(int64_t now_ms, int64_t for_ms) const;

  // Gives it the memory that it wants, if there is enough. Returns whether there was.
  bool Feed();
  // Returns whether it wants more than a small request may have. REQUIRES: hungry().
  bool wants_much() const { return wanted_ > Memory::kSmallMax; }

  bool in_line = false;  // for the event loop: it waits for memory
  bool dirty = false;    // for the event loop: Advance is to be called

 private:
  struct Uses {
    uint32_t reads = 0;
    uint32_t writes = 0;
    uint32_t steps = 0;
  };

  void TakeCommands();
  // Takes one command from the input. Returns false if there is none, or nothing may be taken now.
  bool TakeCommand();
  Parsed Parse(std::string_view input);
  void Refuse(const Parsed& parsed);
  // Whether a command was taken out of the input: not yet, as a copy, or without one.
  enum class Taken : uint8_t { kLater, kCopied, kMoved };
  Taken Take(const Parsed& parsed);
  Job* MakeJob(const Parsed& parsed);
  Job* MakeLongJob(const Parsed& parsed);
  void Prepare(Job& job);
  bool MayTakeMore() const;
  // Both return false if there is no memory. Then the connection is hungry.
  bool TakeInputMemory();
  bool TakeJobMemory(size_t bytes);
  bool Ask(size_t bytes);
  const char* TooLong() const;  // the error
  bool MustWait(const Job& job) const;
  void Note(const Job& job);
  void Forget(const Job& job);
  void Begin(Job& job);
  void TakeReplies();
  void Watch();

  const int fd_;
  const Place place_;
  Holder holder_;  // before all that it counts
  ClientState client_;
  Protocol protocol_;
  bool recognised_ = false;  // its first byte was looked at

  std::string input_;
  size_t at_ = 0;       // of the input that is not parsed
  size_t needed_ = 1;   // bytes without which parsing is in vain
  size_t skip_ = 0;     // bytes to come that belong to a refused command
  bool ended_ = false;  // the application sends no more
  bool broken_ = false;
  bool hungry_ = false;
  size_t wanted_ = 0;      // how much more it wants, if it is hungry
  size_t wanted_job_ = 0;  // of a command that is whole and waits; 0: it wants to read
  Charge input_charge_;
  Charge job_charge_;     // for the next job
  int64_t moved_ms_ = 0;  // when bytes were last received or sent

  std::deque<Job*> jobs_;   // whose replies are not taken, in order; all but the last one begun
  Job* stalled_ = nullptr;  // the last of them, if it must wait
  absl::flat_hash_map<uint64_t, Uses> uses_;  // of keys, by jobs under way
  uint32_t under_way_ = 0;                    // jobs with access to something
  bool all_used_ = false;                     // by the one job under way

  Output output_;
  Charge output_charge_;
  uint32_t watched_ = 0;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_NET_APPLICATION_CONNECTION_H_
