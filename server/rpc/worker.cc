// One look of a worker at everything: its inbox, requests, locks, long values, held replies,
// closing, timers and the janitor. Receives are posted again only at its end, which bounds what one
// look serves (ServeAllThatWaits). A peer is judged only after all that waits was served
// (RunTimers): its message may be among that.

#include "server/rpc/worker.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace gannet {
namespace {

// Returns how many rails are lost.
size_t PostReceivesOfAll(std::span<RailQueues> rails) {
  size_t lost = 0;
  for (RailQueues& rail : rails) {
    if (!rail.lost)
      rail.lost = rail.cq->broken() || (rail.receives->due() && !rail.receives->Repost());
    lost += rail.lost;
  }
  return lost;
}

// From here on nobody sleeps on queues that are broken. The flush of a lost rail's connections is
// still taken from a queue that works.
void ForgetBroken(std::span<const RailQueues> rails, std::span<int> fds) {
  for (size_t i = 0; i < rails.size(); ++i) {
    if (rails[i].cq->broken()) fds[i] = -1;
  }
}

void CountReceivePosts(WorkerContext* context) {
  uint64_t posts = 0;
  for (const RailQueues& rail : context->rails) posts += rail.receives->posts();
  context->counters.receive_posts.Set(posts);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Create(ServerContext& server,
                                                       const Options& options, uint32_t index) {
  GANNET_ASSIGN_OR_RETURN(WorkerQueues made, WorkerQueues::Create(server, options));
  return std::unique_ptr<Worker>(new Worker(server, options, index, std::move(made)));
}

Worker::Worker(ServerContext& server, const Options& options, uint32_t index, WorkerQueues made)
    : context_(server, options, index, std::move(made)) {
  fds_.push_back(context_.inbox->fd());
  for (const RailQueues& rail : context_.rails) fds_.push_back(rail.cq->fd());
}

Worker::~Worker() { CHECK(context_.connections.empty()) << "close the worker first"; }

Worker::Activity Worker::Poll(const Now& now) {
  context_.now = now;
  NoteMap();
  held_replies_.BeginPoll();
  bool active = (context_.inbox->filled() || !acceptor_.idle()) && TakeInbox();
  active |= ServeWhatCame();
  requests_.CountUpdates();
  active |= context_.cas->Poll();
  lock_requests_.Serve();
  long_values_.Serve();
  const bool published = !held_replies_.empty() && held_replies_.SendPublished(more_wait_);
  requests_.replies().batch().Flush();
  if (closer_.any_drained()) FinishClosing();
  if (now.boot >= context_.timers.due()) RunTimers();
  PostReceives();
  if (lock_words_.PollJanitor()) {
    active = true;
    lock_words_.TellBroken();
  }
  PublishCounters();
  if (requests_.TakeServed() || published) return Activity::kRequests;
  active |= context_.cas->in_flight() > 0 || closer_.any_drained() || !acceptor_.idle();
  return active ? Activity::kHousekeeping : Activity::kNone;
}

// Coalesces doorbells under load: more requests arrive while the first are served, so this serves
// those too, and their replies share the doorbell. If only a few requests came, now and before,
// they are answered at once.
inline bool Worker::ServeWhatCame() {
  if (several_rails_) [[unlikely]]
    return ServeRailsInTurn();
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

// Each Poll begins with another rail, since the first one may fill it.
bool Worker::ServeRailsInTurn() {
  const auto rails = static_cast<uint32_t>(context_.rails.size());
  next_rail_ = (next_rail_ + 1) % rails;
  size_t polled = 0;
  for (uint32_t i = 0; i < rails && polled < Requests::kPollMax; ++i) {
    const uint32_t rail = (next_rail_ + i) % rails;
    requests_.Use(rail);
    const uint64_t before = context_.counters.rpcs.value();
    size_t n;
    do {
      n = requests_.Poll(Requests::kPollMax - polled);
      polled += n;
    } while (polled < Requests::kPollMax && (n > kFew || (n > 0 && loaded_)));
    requests_.CountUpdates();
    context_.counters.rail_requests[rail].Add(context_.counters.rpcs.value() - before);
  }
  requests_.ServeAside();
  loaded_ = polled > kFew;
  more_wait_ = polled == Requests::kPollMax;
  return polled > 0;
}

bool Worker::TakeInbox() {
  Inbox::Contents contents = context_.inbox->Take(acceptor_.room());
  if (contents.close && !acceptor_.closing()) {
    closer_.CloseAll("the server is shutting down");
    acceptor_.BeginClosing();
  }
  // Before the arrivals, whose grants say where the words are.
  for (LockService& service : contents.locks) lock_rail_changes_.Take(std::move(service));
  lock_rail_changes_.Look();
  AdoptSessions(contents.sessions);  // before their clients come
  for (Arrival& arrival : contents.arrivals) acceptor_.Put(std::move(arrival));
  for (const Notice& notice : contents.notices) {
    if (notice.type == Notice::Type::kIndexChanged) {
      index_growth_.TellGeneration();
    } else if (notice.type == Notice::Type::kKeysAnnounced) {
      announcement_.store(notice.name, std::memory_order_release);
    } else if (notice.type == Notice::Type::kRailLost) {
      context_.rails[notice.name].lost = true;
    } else {
      acceptor_.OnNotice(notice);
    }
  }
  acceptor_.Poll();
  if (!several_rails_) failed_ |= context_.rails.front().lost;
  if (context_.server.tier_reads != nullptr) tier_gets_.TakeDone();
  return true;
}

void Worker::AdoptSessions(std::span<const SessionCopy> copies) {
  if (copies.empty()) return;
  size_t adopted = 0;
  for (const SessionCopy& copy : copies)
    adopted += context_.sessions.Adopt(copy, context_.now.boot);
  context_.timers.TickBy(silence_.Next());
  LOG(INFO) << "worker " << context_.index << " took " << adopted << " of " << copies.size()
            << " sessions over";
}

void Worker::FinishClosing() {
  for (uint32_t id : closer_.TakeDrained()) {
    ServerConnection* const connection = context_.connections.Find(id);
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
  if (context_.now.boot >= context_.timers.tick_due()) Tick();
  lock_words_.BreakExpired();
  context_.timers.Rearm(std::min(lock_words_.next_expiry(), tier_gets_.EndLongWaits()));
}

// Ends soon, however fast requests come, because receives are posted again only afterwards.
void Worker::ServeAllThatWaits() {
  for (uint32_t rail = 0; rail < context_.rails.size(); ++rail) {
    requests_.Use(rail);
    const uint64_t before = context_.counters.rpcs.value();
    uint32_t left = context_.rails[rail].cq->capacity();
    while (left > 0) {
      const size_t n = requests_.Poll(Requests::kPollMax);
      if (n == 0) break;
      left -= std::min<uint32_t>(left, static_cast<uint32_t>(n));
      if (several_rails_) requests_.ServeAside();
      requests_.replies().batch().Flush();
    }
    requests_.CountUpdates();
    context_.counters.rail_requests[rail].Add(context_.counters.rpcs.value() - before);
  }
}

inline void Worker::PostReceives() {
  if (several_rails_) [[unlikely]] {
    const size_t lost = PostReceivesOfAll(context_.rails);
    if (lost > lost_rails_) {
      lost_rails_ = lost;
      closer_.CloseLostRails();
      failed_ |= lost == context_.rails.size();
      ForgetBroken(context_.rails, std::span(fds_).subspan(kFirstRailFd));
    }
    return CountReceivePosts(&context_);
  }
  if (requests_.cq().broken()) failed_ = true;
  if (!requests_.receives().due()) [[likely]]
    return;
  if (!requests_.receives().Repost()) failed_ = true;
  CountReceivePosts(&context_);
}

void Worker::Tick() {
  // A sleeping worker wakes in time for its Tick. So if a Tick comes late, the worker did not run.
  const BootTime due = context_.timers.tick_due();
  if (due > BootTime()) silence_.Forgive(context_.now.boot - due);
  silence_.Check();
  closer_.BreakKeptLocks(context_.now.boot);
  index_growth_.TellGeneration();
  lock_words_.TellBroken();
  lock_rail_changes_.NoteSwaps();
  paths_.Look();
  context_.sessions.Expire(context_.now.boot);
  observation_.PublishClients();
  CountReceivePosts(&context_);
  context_.timers.SetTick(std::min(silence_.Next(), paths_.Next()));
}

void Worker::PublishCounters() {
  context_.counters.sessions.Set(context_.sessions.size());
  context_.counters.connections.Set(context_.connections.size());
  context_.counters.locks_broken.Set(lock_words_.locks_broken());
  context_.counters.session_bytes.Set(context_.sessions.MemoryBytes() +
                                      context_.connections.MemoryBytes());
  context_.counters.reply_posts.Set(requests_.replies().batch().posts());
}

size_t Worker::busy() const {
  size_t busy = context_.options.reply_buffers - requests_.replies().available();
  busy += long_values_.busy() + tier_gets_.busy();
  busy += lock_requests_.waiting() + context_.cas->in_flight();
  busy += held_replies_.size() + acceptor_.waiting();
  for (const auto& [id, connection] : context_.connections) {
    busy += connection->in_progress.size() + connection->puts_reading.size() +
            connection->puts_waiting.size() + connection->closing;
    const RequestsAside* const aside = connection->session->aside.get();
    if (aside != nullptr) busy += aside->CountOf(id);
  }
  return busy;
}

absl::Status Worker::Arm() {
  if (context_.server.group != nullptr && holds_replies())
    writes_fd() = context_.server.group->BeginWait();
  for (RailQueues& rail : context_.rails) {
    if (rail.cq->broken()) continue;
    const absl::Status armed = rail.cq->Arm();
    if (!several_rails_) return armed;
    rail.lost |= !armed.ok();  // the next Poll finds it
  }
  return absl::OkStatus();
}

void Worker::EndWait(bool slept) {
  if (writes_fd() >= 0) context_.server.group->EndWait(slept);
  writes_fd() = -1;
}

BootTime Worker::deadline() const {
  return std::min(context_.timers.due(), lock_words_.next_pass());
}

void Worker::Woken() {
  EndWait(/*slept=*/true);
  for (const RailQueues& rail : context_.rails) rail.cq->TakeEvent();
  context_.inbox->Silence();
}

}  // namespace gannet
