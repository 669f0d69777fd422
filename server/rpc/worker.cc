#include "server/rpc/worker.h"

#include <algorithm>
#include <limits>

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
// A closing queue pair that is not flushed after this time is destroyed all the same.
constexpr int64_t kFlushNsMax = 10'000'000'000;
// While there are connections, so many Ticks run within the time after which a silent peer is dead.
// So the worker notices if it was stalled for a part of that time.
constexpr int64_t kTicksPerSilence = kMessagesPerSilence;
// No other value is as long and still passes through a buffer: large ones are READ straight into
// their items, and never overwritten or sent.
constexpr uint32_t kStagingBytes = SizeClassBytes(kSealedClassMax);

SessionTable::Options SessionOptions(const Worker::Options& options, const Node& node) {
  return {.credits = options.credits,
          .grace_ns = options.session_grace_ns,
          .worker = options.index,
          .workers = options.workers,
          .random = node.random};
}

}  // namespace

Worker::Worker(const Options& options, const Node* node)
    : options_(options),
      node_(node),
      store_(node->store),
      writes_(node->writes),
      unanswered_max_(options.credits + kHeartbeatsUnansweredMax),
      dispatcher_(node->store, node->writes, node->stats),
      sessions_(SessionOptions(options, *node)),
      batch_(&replies_, [this](ServerConnection* connection, const char* why) {
        CloseConnection(connection, why);
      }) {}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(const Options& options, const Node* node) {
  std::unique_ptr<Worker> worker(new Worker(options, node));
  GANNET_RETURN_IF_ERROR(worker->CreateQueues());
  GANNET_RETURN_IF_ERROR(worker->CreateLocks());
  return worker;
}

Worker::~Worker() { CHECK(connections_.empty()) << "close the worker first"; }

absl::Status Worker::CreateQueues() {
  const DeviceCaps& caps = node_->device.caps;
  send_places_ =
      std::min(options_.credits * kSendPlacesPerCredit + kSendPlacesSpare, caps.max_qp_wr);
  const uint32_t receives = std::min(options_.receives, caps.max_srq_wr);
  const uint64_t entries = std::min<uint64_t>(
      caps.max_cqe, receives + uint64_t{options_.connections_max} * send_places_);
  GANNET_ASSIGN_OR_RETURN(inbox_, Inbox::Create());
  GANNET_ASSIGN_OR_RETURN(
      cq_, CompletionQueue::Create(node_->device.verbs, static_cast<uint32_t>(entries), true));
  GANNET_RETURN_IF_ERROR(cq_->Reserve(receives));
  GANNET_ASSIGN_OR_RETURN(receives_, ReceiveBuffers::Create(node_->pd, receives));
  GANNET_ASSIGN_OR_RETURN(replies_,
                          BufferPool::Create(node_->pd, options_.reply_buffers, kMessageBytesMax));
  GANNET_ASSIGN_OR_RETURN(staging_,
                          BufferPool::Create(node_->pd, options_.staging_buffers, kStagingBytes));
  GANNET_ASSIGN_OR_RETURN(
      replacing_, ReplacingBuffers::Create(node_->pd, options_.replacing_buffers, kStagingBytes));
  return absl::OkStatus();
}

absl::Status Worker::CreateLocks() {
  if (node_->lock_mode() == LockMode::kRpcServer) {
    cas_ = std::make_unique<CpuLockCas>(node_->lock_words);
  } else {
    GANNET_ASSIGN_OR_RETURN(
        cas_, LoopbackLockCas::Create(node_->device, {.pd = node_->pd,
                                                      .address = node_->grant.lock_address,
                                                      .rkey = node_->grant.lock_rkey,
                                                      .idle = node_->idle}));
  }
  janitor_ = std::make_unique<LockJanitor>(node_->lock_words, node_->connection_ids, cas_.get());
  return absl::OkStatus();
}

Worker::Activity Worker::Poll(const Now& now) {
  now_ = now;
  served_ = false;
  bool active = TakeInbox();
  active |= ServeWhatCame();
  CountUpdates();
  if (cq_->broken()) failed_ = true;
  active |= cas_->Poll();
  ServeLocks();
  ServeLargeGets();
  if (!replacing_waits_.empty()) [[unlikely]]
    ServeReplacing();
  if (!waiting_replies_.empty()) [[unlikely]]
    ServeWaitingReplies();
  batch_.Flush();
  FinishClosing();
  if (now.monotonic_ns >= timers_due_ns_) RunTimers();
  if (!receives_->Repost()) failed_ = true;
  if (janitor_->Poll(now.monotonic_ns)) {
    active = true;
    TellBrokenLocks();
  }
  PublishCounters();
  if (served_) return Activity::kRequests;
  active |= cas_->in_flight() > 0 || !drained_.empty() || !arrivals_.empty();
  return active ? Activity::kHousekeeping : Activity::kNone;
}

// Coalesces doorbells under load: more requests arrive while the first are served, so this serves
// those too, and their replies share the doorbell. If only a few requests came, now and before,
// they are answered at once.
inline bool Worker::ServeWhatCame() {
  size_t n = PollCompletions(kPollMax);
  if (n <= kFew && (n == 0 || !loaded_)) return n > 0;
  size_t polled = n;
  while (n > 0 && polled < kPollMax) {
    n = PollCompletions(kPollMax - polled);
    polled += n;
  }
  loaded_ = polled > kFew;
  return true;
}

bool Worker::TakeInbox() {
  if (!inbox_->filled() && arrivals_.empty()) return false;
  Inbox::Contents contents = inbox_->Take(arrivals_.empty() ? kArrivalsPerPoll : 0);
  if (contents.close && !closing_) {
    closing_ = true;
    CloseAll();
  }
  for (Arrival& arrival : contents.arrivals) arrivals_.push_back(std::move(arrival));
  for (const Notice& notice : contents.notices) OnNotice(notice);
  for (size_t i = 0; i < kArrivalsPerPoll && !arrivals_.empty(); ++i) {
    Arrival arrival = std::move(arrivals_.front());
    arrivals_.pop_front();
    OnArrival(std::move(arrival));
  }
  return true;
}

void Worker::RunTimers() {
  // First serve what waits: a peer whose message waits to be read is not silent, and its lease may
  // have been extended.
  ServeAllThatWaits();
  if (now_.monotonic_ns >= tick_due_ns_) Tick();
  BreakExpired();
  timers_due_ns_ = std::min(tick_due_ns_, node_->leases->NextNs(options_.index));
}

// Ends soon, however fast requests come, because receives are posted again only afterwards.
void Worker::ServeAllThatWaits() {
  uint32_t left = cq_->capacity();
  while (left > 0) {
    const size_t n = PollCompletions(kPollMax);
    if (n == 0) break;
    left -= std::min<uint32_t>(left, static_cast<uint32_t>(n));
    batch_.Flush();
  }
  CountUpdates();
}

void Worker::Tick() {
  // A sleeping worker wakes in time for its Tick. So if a Tick comes late, the worker did not run.
  if (tick_due_ns_ > 0) Forgive(now_.monotonic_ns - tick_due_ns_);
  CheckSilence();
  TellIndexGeneration();
  TellBrokenLocks();
  sessions_.Expire(now_.monotonic_ns);
  PublishClients();
  tick_due_ns_ = NextTickNs();
}

void Worker::TickBy(int64_t due_ns) {
  tick_due_ns_ = std::min(tick_due_ns_, due_ns);
  timers_due_ns_ = std::min(timers_due_ns_, tick_due_ns_);
}

int64_t Worker::NextTickNs() const {
  int64_t next =
      sessions_.size() > 0 ? sessions_.next_expiry_ns() : std::numeric_limits<int64_t>::max();
  for (const auto& [id, connection] : connections_) {
    next = std::min(next, connection->closing ? connection->closing_since_ns + kFlushNsMax
                                              : connection->heard_ns + options_.silence_ns_max);
  }
  if (connections_.empty()) return next;
  return std::min(next, now_.monotonic_ns + options_.silence_ns_max / kTicksPerSilence);
}

void Worker::Forgive(int64_t gap_ns) {
  for (const auto& [id, connection] : connections_) {
    connection->heard_ns = std::min(connection->heard_ns + gap_ns, now_.monotonic_ns);
    connection->untaken_since_ns =
        std::min(connection->untaken_since_ns + gap_ns, now_.monotonic_ns);
  }
}

void Worker::CheckSilence() {
  for (const auto& [id, connection] : connections_) {
    if (connection->closing) {
      if (now_.monotonic_ns - connection->closing_since_ns < kFlushNsMax) continue;
      LOG(ERROR) << "connection " << id << " was not flushed in time; destroying it";
      drained_.push_back(id);
    } else if (connection->session->revoked()) {
      CloseConnection(connection.get(), "its key is valid no longer");
    } else if (now_.monotonic_ns - connection->heard_ns >= options_.silence_ns_max) {
      CloseConnection(connection.get(), "the peer is silent");
    } else {
      CheckTaking(connection.get());
    }
  }
}

void Worker::CheckTaking(ServerConnection* connection) {
  SendQueue& queue = connection->send_queue;
  const bool awaits = queue.AwaitsSignaled();
  if (awaits && queue.done() == connection->done_seen) {
    if (now_.monotonic_ns - connection->untaken_since_ns < options_.silence_ns_max) return;
    return CloseConnection(connection, "the peer takes no replies");
  }
  connection->done_seen = queue.done();
  connection->untaken_since_ns = now_.monotonic_ns;
  // Only a signaled send will tell whether the peer took the sends in the queue. So the next reply
  // is signaled, which at the latest is the reply to a heartbeat.
  if (!awaits && queue.in_queue() > 0) queue.SignalNext();
}

size_t Worker::MapBytes() const {
  // absl's tables have one control byte for each place.
  return connections_.capacity() * (sizeof(*connections_.begin()) + 1) +
         by_qp_number_.capacity() * (sizeof(*by_qp_number_.begin()) + 1);
}

void Worker::PublishCounters() {
  counters_.sessions.Set(sessions_.size());
  counters_.connections.Set(connections_.size());
  counters_.locks_broken.Set(janitor_->locks_broken());
  counters_.session_bytes.Set(sessions_.MemoryBytes() + connection_bytes_ + MapBytes());
  counters_.reply_posts.Set(batch_.posts());
  counters_.receive_posts.Set(receives_->posts());
}

size_t Worker::busy() const {
  size_t busy = options_.reply_buffers - replies_.available();
  busy += options_.staging_buffers - staging_.available();
  busy += replacing_.taken(options_.replacing_buffers) + replacing_waits_.size();
  busy += large_gets_waiting_ + lock_requests_.size() + cas_->in_flight();
  busy += waiting_replies_.size() + arrivals_.size() + waiting_arrivals_.size();
  for (const auto& [id, connection] : connections_) {
    busy += connection->in_progress.size() + connection->puts_reading.size() +
            connection->puts_waiting.size() + connection->closing;
  }
  return busy;
}

absl::Status Worker::Arm() { return cq_->Arm(); }

int64_t Worker::deadline_ns() const { return std::min(timers_due_ns_, janitor_->next_pass_ns()); }

void Worker::Woken() {
  cq_->TakeEvents();
  inbox_->Silence();
}

}  // namespace gannet
