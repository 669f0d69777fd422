#include "proxy/net/application_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/hash/hash.h"
#include "proxy/jobs/client_list.h"
#include "proxy/jobs/memcached_commands.h"
#include "proxy/jobs/redis_commands.h"
#include "proxy/protocol/error_reply.h"
#include "proxy/protocol/memcached_binary.h"
#include "proxy/protocol/memcached_parser.h"
#include "proxy/protocol/resp_parser.h"

namespace gannet::proxy {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Limits of one connection.
constexpr size_t kJobsMax = 512;
constexpr size_t kShortInputMax = 256 << 10;
constexpr size_t kKeptInputBytesMax = 16 << 10;
// What a job takes beyond its command, and beyond each word of it.
constexpr size_t kJobBytes = 1 << 10;
constexpr size_t kWordBytes = 96;

uint64_t HashOf(std::string_view key) { return absl::Hash<std::string_view>()(key); }

void Reuse(std::string* text) {
  text->clear();
  if (text->capacity() > kKeptInputBytesMax) std::string().swap(*text);
}

}  // namespace

JobPool::~JobPool() {
  for (Job* job : free_) delete job;
}

Job* JobPool::Take() {
  if (free_.empty()) return new Job;
  Job* job = free_.back();
  free_.pop_back();
  return job;
}

void JobPool::Give(Job* job) {
  job->Trim(free_.size() < kKeptWithLongBuffers);
  if (free_.size() == kKept) {
    delete job;
    return;
  }
  free_.push_back(job);
}

ApplicationConnection::ApplicationConnection(int fd, uint64_t id, Protocol protocol,
                                             const Place& place)
    : fd_(fd),
      place_(place),
      holder_(place.memory),
      protocol_(protocol),
      input_charge_(&holder_, Use::kInput),
      job_charge_(&holder_),
      output_charge_(&holder_, Use::kReplies) {
  client_.id = id;
  client_.authenticated = place.service->passwords == nullptr;
  client_.database.is_only = place.service->databases == 1;
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  epoll_ctl(place_.epoll, EPOLL_CTL_ADD, fd_, &event);
  watched_ = EPOLLIN;
}

// The store may still write into the buffers of jobs that are under way. Whoever finishes them
// gives them to the pool.
ApplicationConnection::~ApplicationConnection() {
  place_.service->clients->Remove(client_.id);
  close(fd_);
  for (Job* job : jobs_) {
    const bool under_way = !job->finished && job != stalled_;
    if (under_way) {
      job->Orphan(place_.orphans);
    } else {
      place_.store->Forget(*job);
      place_.pool->Give(job);
    }
  }
  place_.store->Abandon(holder_);
}

bool ApplicationConnection::IsIdle(int64_t now_ms, int64_t for_ms) const {
  const bool holds = !output_.empty() || holder_.held(Use::kQueued) > kShortInputMax ||
                     (input_charge_.bytes() > kShortInputMax && !hungry_);
  return holds && now_ms - moved_ms_ >= for_ms;
}

bool ApplicationConnection::Ask(size_t bytes) {
  hungry_ = !holder_.Fits(bytes);
  wanted_ = hungry_ ? bytes : 0;
  return !hungry_;
}

bool ApplicationConnection::Feed() {
  return wanted_job_ > 0 ? TakeJobMemory(wanted_job_) : TakeInputMemory();
}

// A long command gets all the memory that it will need at once, so that it never waits with a part
// of it.
bool ApplicationConnection::TakeInputMemory() {
  size_t wanted = std::max(needed_, input_.size()) + kReadBytes;
  hungry_ = false;
  if (wanted <= input_charge_.bytes()) return true;
  if (wanted > kShortInputMax) {
    wanted = std::max(wanted, 2 * input_.size());
    if (wanted > holder_.most()) {
      Refuse(Broken(TooLong()));
      return false;
    }
  }
  if (!Ask(wanted - input_charge_.bytes())) return false;
  if (wanted > kShortInputMax) input_.reserve(wanted);
  input_charge_.Set(wanted);
  return true;
}

bool ApplicationConnection::TakeJobMemory(size_t bytes) {
  wanted_job_ = 0;
  hungry_ = false;
  if (bytes <= job_charge_.bytes()) return true;
  if (!Ask(bytes - job_charge_.bytes())) {
    wanted_job_ = bytes;
    return false;
  }
  job_charge_.Set(bytes);
  return true;
}

const char* ApplicationConnection::TooLong() const {
  switch (protocol_) {
    case Protocol::kRedis:
      return "OOM the command is longer than --buffers allows";
    case Protocol::kMemcached:
      return "SERVER_ERROR out of memory: the command is longer than --buffers allows";
    default:
      return "";
  }
}

void ApplicationConnection::Read(int64_t now_ms) {
  if (ended_ || !MayTakeMore() || !TakeInputMemory()) return;
  char bytes[kReadBytes];
  const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
  if (n > 0) {
    input_.append(bytes, static_cast<size_t>(n));
    moved_ms_ = now_ms;
  }
  if (n == 0) ended_ = true;
  if (n < 0 && errno != EAGAIN && errno != EINTR) broken_ = true;
}

bool ApplicationConnection::Advance(int64_t now_ms) {
  do {
    TakeCommands();
    TakeReplies();
    const uint64_t sent = output_.sent();
    if (broken_ || !output_.Send(fd_)) return false;
    if (output_.sent() != sent || output_.empty()) moved_ms_ = now_ms;
    output_charge_.Set(output_.bytes());
    if (!holder_.parked.empty()) place_.store->Unpark(holder_);
    // What was sent made room for other commands.
  } while (MayTakeMore() && input_.size() >= needed_);
  const bool over = (ended_ || client_.closing) && jobs_.empty() && output_.empty();
  if (over) return false;
  Watch();
  return true;
}

void ApplicationConnection::TakeCommands() {
  if (stalled_ != nullptr && !MustWait(*stalled_)) Begin(*std::exchange(stalled_, nullptr));
  while (!hungry_ && TakeCommand()) {
  }
  if (at_ == input_.size()) {
    Reuse(&input_);
  } else {
    input_.erase(0, at_);
    if (at_ > kShortInputMax && input_.size() < kReadBytes) input_.shrink_to_fit();
  }
  at_ = 0;
  if (needed_ == 1) input_charge_.ReduceTo(input_.capacity());
}

bool ApplicationConnection::MayTakeMore() const {
  // EXEC may change the database, and so which keys the commands behind it have.
  if (stalled_ != nullptr || all_used_ || client_.closing || jobs_.size() >= kJobsMax) return false;
  return !hungry_ && holder_.held(Use::kJobs) < Holder::kMax;
}

bool ApplicationConnection::TakeCommand() {
  if (!MayTakeMore()) return false;
  const size_t skipped = std::min(skip_, input_.size() - at_);
  skip_ -= skipped;
  at_ += skipped;
  const std::string_view input = std::string_view(input_).substr(at_);
  if (input.empty() || input.size() < needed_) return false;
  const Parsed parsed = Parse(input);
  switch (parsed.outcome) {
    case Parsed::Outcome::kNeedsMore:
      needed_ = parsed.needed;
      return false;
    case Parsed::Outcome::kRefused:
    case Parsed::Outcome::kBroken:
      Refuse(parsed);
      break;
    case Parsed::Outcome::kCommand:
      switch (Take(parsed)) {
        case Taken::kLater:
          return false;
        case Taken::kMoved:
          return true;
        case Taken::kCopied:
          break;
      }
  }
  needed_ = 1;
  skip_ = parsed.consumed - std::min(parsed.consumed, input.size());
  at_ = std::min(at_ + parsed.consumed, input_.size());
  return true;
}

// A command that may not be taken yet is parsed again later.
ApplicationConnection::Taken ApplicationConnection::Take(const Parsed& parsed) {
  const ParsedCommand& command = place_.pool->parsed;
  if (protocol_ == Protocol::kRedis && command.words.empty()) return Taken::kCopied;
  const bool is_long = parsed.consumed > kReadBytes;
  // A long command takes over its part of the input.
  // In another database than 0, a job has copies of its keys.
  const size_t copies = client_.database.number == 0
                            ? 0
                            : std::min(parsed.consumed, kKeyBytesMax * command.words.size()) +
                                  kWordBytes * command.words.size();
  const size_t cost =
      kJobBytes + kWordBytes * command.words.size() + (is_long ? 0 : parsed.consumed) + copies;
  if (cost > holder_.most()) {
    Refuse(Refused(parsed.consumed, TooLong()));
    return Taken::kCopied;
  }
  if (!TakeJobMemory(cost)) return Taken::kLater;
  if (is_long && at_ > 0) {
    input_.erase(0, std::exchange(at_, 0));
    return Taken::kMoved;  // that is, the next time
  }
  Job* job = is_long ? MakeLongJob(parsed) : MakeJob(parsed);
  Prepare(*job);
  jobs_.push_back(job);
  holder_.first = jobs_.front();
  if (MustWait(*job)) {
    stalled_ = job;
  } else {
    Begin(*job);
  }
  return is_long ? Taken::kMoved : Taken::kCopied;
}

Parsed ApplicationConnection::Parse(std::string_view input) {
  // --protocol=memcached allows both of its protocols.
  if (!recognised_ && protocol_ != Protocol::kRedis) {
    const Protocol seen = Recognise(input);
    if (seen == Protocol::kAuto && protocol_ == seen) return NeedsMore(input.size() + 1);
    if (protocol_ == Protocol::kAuto || seen == Protocol::kMemcachedBinary) protocol_ = seen;
  }
  recognised_ = true;
  ParsedCommand* const command = &place_.pool->parsed;
  if (protocol_ == Protocol::kRedis) return ParseResp(input, command);
  if (protocol_ == Protocol::kMemcachedBinary) return ParseMemcachedBinary(input, command);
  return ParseMemcached(input, command);
}

void ApplicationConnection::Refuse(const Parsed& parsed) {
  Job* job = place_.pool->Take();
  job->Reset(std::string_view(), {});
  job->owner = this;
  job->holder = &holder_;
  job->charge = Charge(&holder_);
  job->finished = true;
  if (protocol_ == Protocol::kMemcachedBinary) {
    job->reply = parsed.error;
  } else if (!parsed.error.empty()) {
    job->reply = (protocol_ == Protocol::kRedis ? "-" : "") + parsed.error + "\r\n";
  }
  jobs_.push_back(job);
  if (parsed.outcome == Parsed::Outcome::kBroken) client_.closing = true;
}

Job* ApplicationConnection::MakeJob(const Parsed& parsed) {
  Job* job = place_.pool->Take();
  const ParsedCommand& command = place_.pool->parsed;
  const std::string_view bytes = std::string_view(input_).substr(at_, parsed.consumed);
  job->Reset(command.rewritten.empty() ? bytes : command.rewritten, command);
  job->charge = std::exchange(job_charge_, Charge(&holder_));
  return job;
}

// A long command is not copied. What is behind it is at most what one call has read.
Job* ApplicationConnection::MakeLongJob(const Parsed& parsed) {
  Job* job = place_.pool->Take();
  std::string rest = input_.substr(parsed.consumed);
  input_.resize(parsed.consumed);
  job->Reset(std::move(input_), place_.pool->parsed);
  job->charge = std::exchange(job_charge_, Charge(&holder_));
  const size_t kept = std::min(rest.capacity(), input_charge_.bytes());
  job->charge.TakeFrom(input_charge_, input_charge_.bytes() - kept);
  input_ = std::move(rest);
  needed_ = 1;
  return job;
}

void ApplicationConnection::Prepare(Job& job) {
  job.owner = this;
  job.holder = &holder_;
  job.client = &client_;
  job.service = place_.service;
  job.counters = place_.counters;
  job.resp3 = client_.resp3;
  if (protocol_ == Protocol::kRedis) {
    place_.counters->redis_commands.Add();
    PrepareRedis(job);
  } else if (protocol_ == Protocol::kMemcachedBinary) {
    place_.counters->binary_commands.Add();
    PrepareMemcachedBinary(job);
  } else {
    place_.counters->memcached_commands.Add();
    PrepareMemcached(job);
  }
  if (job.next == nullptr) job.access = Access::kNothing;  // it is answered already
  for (const std::string_view key : job.keys) job.key_hashes.push_back(HashOf(key));
}

// --- the order of jobs ---

bool ApplicationConnection::MustWait(const Job& job) const {
  if (job.access == Access::kNothing) return false;
  if (all_used_ || job.access == Access::kAll) return under_way_ > 0;
  if (under_way_ == 0) return false;
  return std::any_of(job.key_hashes.begin(), job.key_hashes.end(), [&](uint64_t hash) {
    const auto found = uses_.find(hash);
    if (found == uses_.end()) return false;
    const Uses& uses = found->second;
    if (job.access == Access::kRead) return uses.steps > 0;
    return uses.reads + uses.steps > 0 || (job.access == Access::kSteps && uses.writes > 0);
  });
}

void ApplicationConnection::Note(const Job& job) {
  if (job.access == Access::kNothing) return;
  ++under_way_;
  all_used_ = job.access == Access::kAll;
  for (const uint64_t hash : job.key_hashes) {
    Uses& uses = uses_[hash];
    ++(job.access == Access::kRead    ? uses.reads
       : job.access == Access::kWrite ? uses.writes
                                      : uses.steps);
  }
}

void ApplicationConnection::Forget(const Job& job) {
  if (job.access == Access::kNothing) return;
  --under_way_;
  all_used_ = false;
  if (under_way_ == 0) return uses_.clear();
  for (const uint64_t hash : job.key_hashes) {
    const auto found = uses_.find(hash);
    Uses& uses = found->second;
    --(job.access == Access::kRead    ? uses.reads
       : job.access == Access::kWrite ? uses.writes
                                      : uses.steps);
    if (uses.reads + uses.writes + uses.steps == 0) uses_.erase(found);
  }
}

void ApplicationConnection::Begin(Job& job) {
  Note(job);
  place_.store->Run(job);
  if (job.finished) OnFinished(job);
}

void ApplicationConnection::OnFinished(Job& job) {
  Forget(job);
  if (job.execution != nullptr) client_.database = job.execution->client.database;
  if (jobs_.front() != &job) job.KeepOnlyReply();
}

// --- replies ---

void ApplicationConnection::TakeReplies() {
  while (!jobs_.empty() && jobs_.front()->finished) {
    Job* job = jobs_.front();
    jobs_.pop_front();
    if (IsErrorReply(protocol_, job->reply)) place_.counters->error_replies.Add();
    if (!job->silent) output_.Append(&job->reply);
    place_.pool->Give(job);
  }
  holder_.first = jobs_.empty() ? nullptr : jobs_.front();
}

void ApplicationConnection::Watch() {
  uint32_t wanted = 0;
  if (!ended_ && !hungry_ && MayTakeMore()) wanted |= EPOLLIN;
  if (!output_.empty()) wanted |= EPOLLOUT;
  if (wanted == watched_) return;
  epoll_event event{.events = wanted, .data = {.ptr = this}};
  epoll_ctl(place_.epoll, EPOLL_CTL_MOD, fd_, &event);
  watched_ = wanted;
}

}  // namespace gannet::proxy
