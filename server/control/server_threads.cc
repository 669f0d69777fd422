#include "server/control/server_threads.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/short_turns.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/control/core_demand.h"
#include "server/control/worker_turns.h"

namespace gannet {
namespace {

// How often the workers' progress is looked at while the server stops.
constexpr int64_t kStopPollNs = 5 * kNsPerMs;
// A Poll that takes this long is worth a line in the log.
constexpr int64_t kSlowPollNs = 100 * kNsPerMs;
// A primary that stops waits so long for another one.
constexpr int64_t kStepDownNsMax = 30 * kNsPerSecond;
// After this time the process ends, even if something still hangs.
constexpr int64_t kStopNsMax = 15 * kNsPerSecond;

// Waits until one of `fds` is readable or the time has come.
void WaitUntil(std::span<pollfd> fds, int64_t deadline_ns) {
  timespec timeout{};
  timespec* forever = nullptr;
  if (deadline_ns != std::numeric_limits<int64_t>::max()) {
    const int64_t left_ns = std::max<int64_t>(deadline_ns - ServerNs(), 0);
    timeout = {left_ns / kNsPerSecond, left_ns % kNsPerSecond};
    forever = &timeout;
  }
  ppoll(fds.data(), fds.size(), forever, nullptr);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerThreads>> ServerThreads::Start(std::unique_ptr<Server> server,
                                                                    const Options& options) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> stop, WakeUp::Create());
  std::unique_ptr<ServerThreads> threads(
      new ServerThreads(std::move(server), options, std::move(stop)));
  threads->server_->store().UseClock([raw = threads.get()] { return raw->clock_.WallMs(); });
  if (DiskLog* const disk = threads->server_->disk()) {
    const auto wake_workers = [raw = threads.get()] {
      for (const auto& worker : raw->server_->workers()) worker->inbox().Wake();
    };
    // In a group, the other one wakes the member's thread.
    WakeUp* const wanted = threads->server_->member() == nullptr
                               ? threads->server_->sync_wanted()
                               : threads->server_->disk_sync_wanted();
    GANNET_ASSIGN_OR_RETURN(threads->disk_, DiskThread::Start(disk, wanted, wake_workers));
  }
  threads->server_->UseClock(&threads->clock_);
  threads->running_ = threads->server_->workers().size();
  for (const auto& worker : threads->server_->workers()) {
    threads->workers_.emplace_back(
        [raw = threads.get(), &worker] { raw->RunWorker(worker.get()); });
  }
  if (threads->server_->member() != nullptr) {
    threads->member_ = std::thread([raw = threads.get()] { raw->RunMember(); });
  }
  threads->control_ = std::thread([raw = threads.get()] { raw->RunControl(); });
  return threads;
}

ServerThreads::~ServerThreads() {
  RequestStop();
  Wait().IgnoreError();
}

void ServerThreads::RequestStop() {
  asked_to_stop_.store(true, std::memory_order_relaxed);
  stop_->Ask();
}

absl::Status ServerThreads::Wait() {
  if (control_.joinable()) control_.join();
  for (std::thread& worker : workers_) {
    if (worker.joinable()) worker.join();
  }
  if (member_.joinable()) {
    member_stops_.store(true, std::memory_order_relaxed);
    server_->sync_wanted()->Ask();
    member_.join();
    const bool asked = asked_to_stop_.load(std::memory_order_relaxed);
    if (status_.ok() && !asked && server_->member()->ended()) {
      const std::string& why = server_->member()->why();
      status_ = server_->member()->replaced() ? absl::FailedPreconditionError(why)
                                              : absl::AbortedError(why);
    }
  }
  if (disk_ == nullptr) return status_;
  absl::Status status = status_;
  status.Update(disk_->Stop());
  return status;
}

void ServerThreads::RunWorker(Worker* worker) {
  pthread_setname_np(pthread_self(), "kv-worker");
  WorkerTurns turns(AskForTurns);
  WorkerWait wait(options_.busy_poll_ns, CoreDemand(CoresOfThread(), RunnableThreadsOfKernel()));
  int64_t poll_began_ns = 0;  // when the last Poll began, if this one follows at once
  while (!worker->closed() && !worker->failed()) {
    const Now now = clock_.Read();
    if (poll_began_ns != 0) NoteSlowPoll(worker, poll_began_ns, now.monotonic_ns);
    poll_began_ns = 0;
    turns.Awake(now.monotonic_ns, worker->counters().sessions.value());
    if (beat_ns_ != 0) pulses_.Turn(worker->index(), now.monotonic_ns);
    const Worker::Activity activity = worker->Poll(now);
    if (activity == Worker::Activity::kRequests) wait.Came();
    if (activity != Worker::Activity::kNone) {
      poll_began_ns = now.monotonic_ns;
      continue;
    }
    // While clients wait for the disk, its thread wakes the worker. It may need this core.
    if (!worker->waits_for_disk() && wait.Polls(now.monotonic_ns)) continue;
    turns.Sleeps();
    if (!SleepWorker(worker, &wait)) break;
  }
  if (!worker->closed()) worker_failed_.store(true, std::memory_order_relaxed);
  pulses_.Rest(worker->index());
  running_.fetch_sub(1, std::memory_order_release);
}

bool ServerThreads::SleepWorker(Worker* worker, WorkerWait* wait) {
  // Arms, then polls once more: what came before Arm wakes nobody.
  if (!worker->Arm().ok()) return false;
  const Worker::Activity late = worker->Poll(clock_.Read());
  if (late == Worker::Activity::kRequests) wait->Came();
  if (late != Worker::Activity::kNone || worker->closed()) {
    worker->StayAwake();
    return true;
  }
  const auto [requests, inbox, writes] = worker->fds();
  pollfd fds[] = {{requests, POLLIN, 0}, {inbox, POLLIN, 0}, {writes, POLLIN, 0}};
  pulses_.Rest(worker->index());
  WaitUntil(fds, worker->deadline_ns());
  worker->Woken();
  return true;
}

void ServerThreads::NoteSlowPoll(const Worker* worker, int64_t began_ns, int64_t ended_ns) {
  if (ended_ns - began_ns < kSlowPollNs) return;
  const std::optional<uint64_t> left_out = slow_polls_.Allow(ended_ns);
  if (!left_out) return;
  LOG(WARNING) << "worker " << worker->index() << " took " << (ended_ns - began_ns) / kNsPerMs
               << " ms for what should take less than one (" << *left_out
               << " times more since the last such line): it had to wait for a CPU, or its memory "
                  "is swapped out";
}

bool ServerThreads::SleepControl(bool stopping) {
  int64_t deadline_ns = stopping ? ServerNs() + kStopPollNs : server_->deadline_ns();
  if (beat_ns_ != 0) deadline_ns = std::min(deadline_ns, next_beat_ns_);
  pollfd fds[] = {{server_->fd(), POLLIN, 0},
                  {stopping ? -1 : stop_->fd(), POLLIN, 0},
                  {server_->tidy_fd(), POLLIN, 0}};
  WaitUntil(fds, deadline_ns);
  return fds[1].revents != 0;
}

void ServerThreads::Beat(int64_t now_ns) {
  if (beat_ns_ == 0 || now_ns < next_beat_ns_) return;
  next_beat_ns_ = now_ns + beat_ns_;
  if (pulses_.AllBeat(now_ns, beat_ns_)) options_.supervisor->Alive();
}

// Sleeps until something comes, or the member's time has come. Workers that wait for what the
// backups have not are woken.
void ServerThreads::RunMember() {
  pthread_setname_np(pthread_self(), "kv-group");
  Member* const member = server_->member();
  std::vector<pollfd> fds;
  const auto poll_member = [&] {
    if (!member->Poll(ServerNs())) return;
    for (const auto& worker : server_->workers()) worker->inbox().Wake();
  };
  while (!member_stops_.load(std::memory_order_relaxed)) {
    poll_member();
    if (member->ended()) stop_->Ask();
    if (!member->Arm(ServerNs()).ok()) worker_failed_.store(true, std::memory_order_relaxed);
    server_->sync_wanted()->Take();
    poll_member();
    fds.assign(1, {server_->sync_wanted()->fd(), POLLIN, 0});
    for (const int fd : member->fds()) fds.push_back({fd, POLLIN, 0});
    WaitUntil(fds, member->ended() ? ServerNs() + kStopPollNs : member->next_ns());
    member->Woken();
  }
}

// While it waits, clients are still told where to go.
void ServerThreads::StepDown() {
  Member* const member = server_->member();
  if (member == nullptr) return;
  const int64_t give_up_ns = ServerNs() + kStepDownNsMax;
  while (!member->ended() && ServerNs() < give_up_ns && member->StepDown()) {
    server_->Poll(clock_.Read());
    SleepControl(true);
  }
}

void ServerThreads::RunControl() {
  pthread_setname_np(pthread_self(), "kv-control");
  bool stopping = false;
  int64_t give_up_ns = std::numeric_limits<int64_t>::max();
  // The connection manager is polled to the end: workers that destroy connections wait for events
  // to be acknowledged.
  while (running_.load(std::memory_order_acquire) > 0) {
    const Now now = clock_.Read();
    while (server_->Poll(now)) {
    }
    Beat(now.monotonic_ns);
    const bool failed = !server_->status().ok() || worker_failed_.load(std::memory_order_relaxed) ||
                        (server_->member() != nullptr && server_->member()->ended());
    if (!stopping && (SleepControl(false) || failed)) {
      stopping = true;
      StepDown();
      give_up_ns = ServerNs() + kStopNsMax;
      if (options_.supervisor != nullptr) options_.supervisor->Stopping();
      server_->BeginStop();
    } else if (stopping) {
      SleepControl(true);
      if (now.monotonic_ns > give_up_ns) LOG(FATAL) << "the workers do not stop";
    }
  }
  status_ = server_->status();
  if (status_.ok() && worker_failed_.load(std::memory_order_relaxed)) {
    status_ = absl::UnavailableError(
        absl::StrCat("device ", server_->device().name, " lost a queue of the server"));
  }
}

}  // namespace gannet
