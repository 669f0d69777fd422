#include "server/rpc/worker.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/protocol/heartbeats.h"
#include "glog/logging.h"
#include "server/locks/cpu_lock_cas.h"
#include "server/locks/loopback_lock_cas.h"

namespace gannet {
namespace {

// A send queue holds the replies to `credits` requests whose acknowledgements are still on their
// way, the replies to the next requests, heartbeats, READs of values, and the drain.
constexpr uint32_t kSendPlacesPerCredit = 3;
constexpr uint32_t kSendPlacesSpare = 16;
// No other value is as long and still passes through a buffer: large ones are READ straight into
// their items, and never overwritten or sent.
constexpr uint32_t kStagingBytes = SizeClassBytes(kSealedClassMax);

SessionTable::Options SessionOptions(const Worker::Options& options,
                                     const SharedByWorkers& shared) {
  return {.credits = options.credits,
          .grace_ns = options.session_grace_ns,
          .worker = options.index,
          .workers = options.workers,
          .random = shared.random,
          .stream = shared.session_stream};
}

}  // namespace

Worker::Worker(const Options& options, const SharedByWorkers* shared, Made made)
    : options_(options),
      shared_(shared),
      made_(std::move(made)),
      unanswered_max_(options.credits + kHeartbeatsUnansweredMax),
      sessions_(SessionOptions(options, *shared)) {}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(const Options& options,
                                                       const SharedByWorkers* shared) {
  GANNET_ASSIGN_OR_RETURN(Made made, Make(options, *shared));
  return std::unique_ptr<Worker>(new Worker(options, shared, std::move(made)));
}

Worker::~Worker() { CHECK(connections_.empty()) << "close the worker first"; }

absl::StatusOr<Worker::Made> Worker::Make(const Options& options, const SharedByWorkers& shared) {
  const DeviceCaps& caps = shared.device.caps;
  Made made;
  made.send_places =
      std::min(options.credits * kSendPlacesPerCredit + kSendPlacesSpare, caps.max_qp_wr);
  const uint32_t receives = std::min(options.receives, caps.max_srq_wr);
  const uint64_t entries = std::min<uint64_t>(
      caps.max_cqe, receives + uint64_t{options.connections_max} * made.send_places);
  GANNET_ASSIGN_OR_RETURN(made.inbox, Inbox::Create());
  GANNET_ASSIGN_OR_RETURN(
      made.cq, CompletionQueue::Create(shared.device.verbs, static_cast<uint32_t>(entries), true));
  GANNET_RETURN_IF_ERROR(made.cq->Reserve(receives));
  GANNET_ASSIGN_OR_RETURN(made.receives, ReceiveBuffers::Create(shared.pd, receives));
  GANNET_ASSIGN_OR_RETURN(made.replies,
                          BufferPool::Create(shared.pd, options.reply_buffers, kMessageBytesMax));
  GANNET_ASSIGN_OR_RETURN(made.staging,
                          BufferPool::Create(shared.pd, options.staging_buffers, kStagingBytes));
  GANNET_ASSIGN_OR_RETURN(made.replacing, ReplacingBuffers::Create(
                                              shared.pd, options.replacing_buffers, kStagingBytes));
  GANNET_ASSIGN_OR_RETURN(made.cas, MakeCas(shared));
  return made;
}

absl::StatusOr<std::unique_ptr<LockCas>> Worker::MakeCas(const SharedByWorkers& shared) {
  if (shared.lock_mode() == LockMode::kRpcServer) {
    return std::make_unique<CpuLockCas>(shared.lock_words);
  }
  return LoopbackLockCas::Create(shared.device, {.pd = shared.pd,
                                                 .address = shared.grant.lock_address,
                                                 .rkey = shared.grant.lock_rkey,
                                                 .idle = shared.idle});
}

Worker::Activity Worker::Poll(const Now& now) {
  now_ = now;
  NoteMap();
  held_replies_.BeginPoll();
  bool active = (made_.inbox->filled() || !acceptor_.idle()) && TakeInbox();
  active |= ServeWhatCame();
  requests_.CountUpdates();
  if (made_.cq->broken()) failed_ = true;
  active |= lock_words_.cas().Poll();
  lock_requests_.Serve();
  long_values_.Serve();
  const bool published = !held_replies_.empty() && held_replies_.SendPublished(more_wait_);
  requests_.replies().batch().Flush();
  if (closer_.any_drained()) FinishClosing();
  if (now.monotonic_ns >= timers_.due_ns()) RunTimers();
  if (!made_.receives->Repost()) failed_ = true;
  if (lock_words_.PollJanitor()) {
    active = true;
    lock_words_.TellBroken();
  }
  PublishCounters();
  if (requests_.TakeServed() || published) return Activity::kRequests;
  active |= lock_words_.in_flight() > 0 || closer_.any_drained() || !acceptor_.idle();
  return active ? Activity::kHousekeeping : Activity::kNone;
}

// Coalesces doorbells under load: more requests arrive while the first are served, so this serves
// those too, and their replies share the doorbell. If only a few requests came, now and before,
// they are answered at once.
inline bool Worker::ServeWhatCame() {
  size_t n = requests_.Poll(Requests::kPollMax);
  more_wait_ = false;
  if (n <= kFew && (n == 0 || !loaded_)) return n > 0;
  size_t polled = n;
  while (n > 0 && polled < Requests::kPollMax) {
    n = requests_.Poll(Requests::kPollMax - polled);
    polled += n;
  }
  loaded_ = polled > kFew;
  more_wait_ = n > 0;
  return true;
}

bool Worker::TakeInbox() {
  Inbox::Contents contents = made_.inbox->Take(acceptor_.room());
  if (contents.close && !acceptor_.closing()) {
    closer_.CloseAll("the server is shutting down");
    acceptor_.BeginClosing();
  }
  AdoptSessions(contents.sessions);  // before their clients come
  for (Arrival& arrival : contents.arrivals) acceptor_.Put(std::move(arrival));
  for (const Notice& notice : contents.notices) {
    if (notice.type == Notice::Type::kIndexChanged) {
      index_growth_.TellGeneration();
    } else {
      acceptor_.OnNotice(notice);
    }
  }
  acceptor_.Poll();
  return true;
}

void Worker::AdoptSessions(std::span<const SessionCopy> copies) {
  if (copies.empty()) return;
  size_t adopted = 0;
  for (const SessionCopy& copy : copies) adopted += sessions_.Adopt(copy, now_.monotonic_ns);
  timers_.TickBy(silence_.NextNs());
  LOG(INFO) << "worker " << options_.index << " took " << adopted << " of " << copies.size()
            << " sessions over";
}

void Worker::FinishClosing() {
  for (uint32_t id : closer_.TakeDrained()) {
    ServerConnection* const connection = connections_.Find(id);
    if (connection == nullptr) continue;
    acceptor_.EndWait(*connection);
    closer_.Destroy(connection);
  }
  if (long_values_.puts_wait()) {
    // A destroyed connection may have held the buffer that others wait for.
    long_values_.ServePuts();
    requests_.replies().batch().Flush();
  }
}

void Worker::RunTimers() {
  // First serve what waits: a peer whose message waits to be read is not silent, and its lease may
  // have been extended.
  ServeAllThatWaits();
  if (now_.monotonic_ns >= timers_.tick_due_ns()) Tick();
  lock_words_.BreakExpired();
  timers_.Rearm(lock_words_.next_expiry_ns());
}

// Ends soon, however fast requests come, because receives are posted again only afterwards.
void Worker::ServeAllThatWaits() {
  uint32_t left = made_.cq->capacity();
  while (left > 0) {
    const size_t n = requests_.Poll(Requests::kPollMax);
    if (n == 0) break;
    left -= std::min<uint32_t>(left, static_cast<uint32_t>(n));
    requests_.replies().batch().Flush();
  }
  requests_.CountUpdates();
}

void Worker::Tick() {
  // A sleeping worker wakes in time for its Tick. So if a Tick comes late, the worker did not run.
  const int64_t due_ns = timers_.tick_due_ns();
  if (due_ns > 0) silence_.Forgive(now_.monotonic_ns - due_ns);
  silence_.Check();
  index_growth_.TellGeneration();
  lock_words_.TellBroken();
  sessions_.Expire(now_.monotonic_ns);
  observation_.PublishClients();
  timers_.SetTick(silence_.NextNs());
}

void Worker::PublishCounters() {
  counters_.sessions.Set(sessions_.size());
  counters_.connections.Set(connections_.size());
  counters_.locks_broken.Set(lock_words_.locks_broken());
  counters_.session_bytes.Set(sessions_.MemoryBytes() + connections_.MemoryBytes());
  counters_.reply_posts.Set(requests_.replies().batch().posts());
  counters_.receive_posts.Set(made_.receives->posts());
}

size_t Worker::busy() const {
  size_t busy = options_.reply_buffers - requests_.replies().available();
  busy += long_values_.busy(options_.staging_buffers, options_.replacing_buffers);
  busy += lock_requests_.waiting() + lock_words_.in_flight();
  busy += held_replies_.size() + acceptor_.waiting();
  for (const auto& [id, connection] : connections_) {
    busy += connection->in_progress.size() + connection->puts_reading.size() +
            connection->puts_waiting.size() + connection->closing;
  }
  return busy;
}

absl::Status Worker::Arm() {
  if (shared_->group != nullptr && holds_replies()) writes_fd_ = shared_->group->BeginWait();
  return made_.cq->Arm();
}

void Worker::EndWait(bool slept) {
  if (writes_fd_ >= 0) shared_->group->EndWait(slept);
  writes_fd_ = -1;
}

int64_t Worker::deadline_ns() const {
  return std::min(timers_.due_ns(), lock_words_.next_pass_ns());
}

void Worker::Woken() {
  EndWait(/*slept=*/true);
  made_.cq->TakeEvent();
  made_.inbox->Silence();
}

}  // namespace gannet
