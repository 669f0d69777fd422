#include "proxy/net/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/hash/hash.h"
#include "proxy/jobs/memcached_commands.h"
#include "proxy/jobs/redis_commands.h"
#include "proxy/protocol/memcached_parser.h"
#include "proxy/protocol/resp_parser.h"

namespace gannet::proxy {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Of one connection.
constexpr size_t kJobsMax = 512;
constexpr size_t kReplyBytesMax = 4 << 20;
constexpr size_t kKeptBytesMax = 256 << 10;

uint64_t HashOf(std::string_view key) { return absl::Hash<std::string_view>()(key); }

void Reuse(std::string* text) {
  text->clear();
  if (text->capacity() > kKeptBytesMax) std::string().swap(*text);
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
  if (free_.size() == kKept) {
    delete job;
    return;
  }
  job->Trim();
  free_.push_back(job);
}

Connection::Connection(int fd, uint64_t id, Protocol protocol, const Place& place)
    : fd_(fd), place_(place), protocol_(protocol) {
  client_.id = id;
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  epoll_ctl(place_.epoll, EPOLL_CTL_ADD, fd_, &event);
  watched_ = EPOLLIN;
}

// The store may still write into the buffers of jobs that are under way. Whoever finishes them
// gives them to the pool.
Connection::~Connection() {
  close(fd_);
  for (Job* job : jobs_) {
    const bool under_way = !job->finished && job != stalled_;
    if (under_way) {
      job->owner = nullptr;
    } else {
      place_.pool->Give(job);
    }
  }
}

void Connection::Read() {
  if (ended_ || !MayTakeMore()) return;
  char bytes[kReadBytes];
  const ssize_t n = recv(fd_, bytes, sizeof(bytes), 0);
  if (n > 0) input_.append(bytes, static_cast<size_t>(n));
  if (n == 0) ended_ = true;
  if (n < 0 && errno != EAGAIN && errno != EINTR) broken_ = true;
}

bool Connection::Advance() {
  do {
    TakeCommands();
    TakeReplies();
    if (broken_ || !Send()) return false;
    // What was sent made room for other commands.
  } while (MayTakeMore() && input_.size() >= needed_);
  const bool over = (ended_ || client_.closing) && jobs_.empty() && output_.empty();
  if (over) return false;
  Watch();
  return true;
}

void Connection::TakeCommands() {
  if (stalled_ != nullptr && !MustWait(*stalled_)) Begin(*std::exchange(stalled_, nullptr));
  while (TakeCommand()) {
  }
  if (at_ == input_.size()) {
    Reuse(&input_);
  } else {
    input_.erase(0, at_);
  }
  at_ = 0;
}

bool Connection::MayTakeMore() const {
  if (stalled_ != nullptr || client_.closing || jobs_.size() >= kJobsMax) return false;
  return jobs_.empty() ? output_.size() - sent_ < kReplyBytesMax
                       : output_.size() - sent_ + jobs_.size() * expected_reply_ < kReplyBytesMax;
}

bool Connection::TakeCommand() {
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
      if (Job* job = Prepare(input.substr(0, parsed.consumed)); job != nullptr) {
        jobs_.push_back(job);
        if (MustWait(*job)) {
          stalled_ = job;
        } else {
          Begin(*job);
        }
      }
      break;
  }
  needed_ = 1;
  at_ += std::min(parsed.consumed, input.size());
  skip_ = parsed.consumed - std::min(parsed.consumed, input.size());
  return true;
}

Parsed Connection::Parse(std::string_view input) {
  if (protocol_ == Protocol::kAuto) protocol_ = Recognise(input[0]);
  if (protocol_ == Protocol::kNone) return Broken("");
  return protocol_ == Protocol::kRedis ? ParseResp(input, &command_)
                                       : ParseMemcached(input, &command_);
}

void Connection::Refuse(const Parsed& parsed) {
  Job* job = place_.pool->Take();
  job->Reset({}, {});
  job->owner = this;
  job->finished = true;
  if (!parsed.error.empty()) {
    job->reply = (protocol_ == Protocol::kRedis ? "-" : "") + parsed.error + "\r\n";
  }
  jobs_.push_back(job);
  if (parsed.outcome == Parsed::Outcome::kBroken) client_.closing = true;
}

Job* Connection::Prepare(std::string_view bytes) {
  if (protocol_ == Protocol::kRedis && command_.words.empty()) return nullptr;
  Job* job = place_.pool->Take();
  job->Reset(bytes, command_);
  job->owner = this;
  job->client = &client_;
  job->service = place_.service;
  job->counters = place_.counters;
  job->resp3 = client_.resp3;
  place_.counters->commands.Add();
  protocol_ == Protocol::kRedis ? PrepareRedis(*job) : PrepareMemcached(*job);
  if (job->next == nullptr) job->access = Access::kNothing;  // it is answered already
  for (const std::string_view key : job->keys) job->key_hashes.push_back(HashOf(key));
  return job;
}

// --- the order of jobs
// ----------------------------------------------------------------------------

bool Connection::MustWait(const Job& job) const {
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

void Connection::Note(const Job& job) {
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

void Connection::Forget(const Job& job) {
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

void Connection::Begin(Job& job) {
  Note(job);
  place_.store->Run(job);
  if (job.finished) OnFinished(job);
}

void Connection::OnFinished(Job& job) { Forget(job); }

// --- replies
// --------------------------------------------------------------------------------------

void Connection::TakeReplies() {
  while (!jobs_.empty() && jobs_.front()->finished) {
    Job* job = jobs_.front();
    jobs_.pop_front();
    expected_reply_ = std::max(job->reply.size(), expected_reply_ - expected_reply_ / 8);
    if (!job->silent) output_.append(job->reply);
    place_.pool->Give(job);
  }
}

// Returns false if the application is gone.
bool Connection::Send() {
  while (sent_ < output_.size()) {
    const ssize_t n = send(fd_, output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<size_t>(n);
  }
  Reuse(&output_);
  sent_ = 0;
  return true;
}

void Connection::Watch() {
  uint32_t wanted = 0;
  if (!ended_ && MayTakeMore()) wanted |= EPOLLIN;
  if (!output_.empty()) wanted |= EPOLLOUT;
  if (wanted == watched_) return;
  epoll_event event{.events = wanted, .data = {.ptr = this}};
  epoll_ctl(place_.epoll, EPOLL_CTL_MOD, fd_, &event);
  watched_ = wanted;
}

}  // namespace gannet::proxy
