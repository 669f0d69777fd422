// The threads of a server: one for each worker, kv-control for connections and idle work, kv-group
// for a member, and the disk's. A worker that has nothing to do arms its queues and polls once more
// before it sleeps, since what came before wakes nobody. Stopping has an order: leave the group,
// close all connections, join the workers, then the member, then the disk.

#include "server/main/control/server_threads.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clocks.h"
#include "common/base/short_turns.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/main/control/core_demand.h"
#include "server/main/control/worker_turns.h"

namespace gannet {
namespace {

// How often the workers' progress is looked at while the server stops.
constexpr int64_t kStopPollNs = 5 * kNsPerMs;
// A Poll that takes this long is worth a line in the log.
constexpr int64_t kSlowPollNs = 100 * kNsPerMs;
// A primary that stops waits so long for another one, once there is a backup to be it.
constexpr int64_t kHandOverNsMax = 30 * kNsPerSecond;
// How often a supervisor is told that this goes on, and how much time that gives.
constexpr int64_t kTellNs = kNsPerSecond;
constexpr int64_t kMoreTimeNs = 20 * kNsPerSecond;
// After this time the process ends, even if something still hangs.
constexpr int64_t kStopNsMax = 15 * kNsPerSecond;

// Waits until one of `fds` is readable or the time has come.
void WaitUntil(std::span<pollfd> fds, BootTime deadline) {
  timespec timeout{};
  timespec* forever = nullptr;
  if (deadline != BootTime::Never()) {
    const int64_t left_ns = std::max<int64_t>(deadline - MachineBootTime(), 0);
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
  if (const ServerTime begins_at = threads->server_->clock_begins_at();
      begins_at > threads->clock_.Time()) {
    threads->clock_.GoOnFrom(begins_at);
  }
  threads->server_->store().UseClock(&threads->clock_);
  if (DiskLog* const disk = threads->server_->disk()) {
    // In a group, the other one wakes the member's thread.
    WakeUp* const wanted = threads->server_->member() == nullptr
                               ? threads->server_->sync_wanted()
                               : threads->server_->disk_sync_wanted();
    GANNET_ASSIGN_OR_RETURN(threads->disk_,
                            DiskThread::Start(disk, wanted, &threads->server_->all_workers()));
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

bool ServerThreads::AwaitStop(int64_t ns_max) const {
  pollfd fds[] = {{stop_->fd(), POLLIN, 0}};
  WaitUntil(fds, MachineBootTime() + ns_max);
  return fds[0].revents != 0;
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
  BootTime poll_began;  // when the last Poll began, if this one follows at once
  while (!worker->closed() && !worker->failed()) {
    const Now now = clock_.Read();
    if (poll_began != BootTime()) NoteSlowPoll(worker, poll_began, now.boot);
    poll_began = BootTime();
    turns.Awake(now.boot, worker->counters().sessions.value());
    if (beat_ns_ != 0) pulses_.Turn(worker->index(), now.boot);
    const Worker::Activity activity = worker->Poll(now);
    if (activity == Worker::Activity::kRequests) wait.Came();
    if (activity != Worker::Activity::kNone) {
      poll_began = now.boot;
      continue;
    }
    // While clients wait for the disk, its thread wakes the worker. It may need this core.
    if (!worker->waits_for_disk() && wait.Polls(now.boot)) continue;
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
  std::array<pollfd, Worker::kFdsMax> fds;
  size_t n = 0;
  for (const int fd : worker->fds()) fds[n++] = {fd, POLLIN, 0};
  pulses_.Rest(worker->index());
  WaitUntil(std::span(fds).first(n), worker->deadline());
  worker->Woken();
  return true;
}

void ServerThreads::NoteSlowPoll(const Worker* worker, BootTime began, BootTime ended) {
  if (ended - began < kSlowPollNs) return;
  const std::optional<uint64_t> left_out = slow_polls_.Allow(ended);
  if (!left_out) return;
  LOG(WARNING) << "worker " << worker->index() << " took " << (ended - began) / kNsPerMs
               << " ms for what should take less than one (" << *left_out
               << " times more since the last such line): it had to wait for a CPU, or its memory "
                  "is swapped out";
}

bool ServerThreads::SleepControl(bool stopping) {
  BootTime deadline = stopping ? MachineBootTime() + kStopPollNs : server_->deadline();
  if (beat_ns_ != 0) deadline = std::min(deadline, next_beat_);
  pollfd fds[] = {{server_->fd(), POLLIN, 0},
                  {stopping ? -1 : stop_->fd(), POLLIN, 0},
                  {server_->tidy_fd(), POLLIN, 0}};
  WaitUntil(fds, deadline);
  return fds[1].revents != 0;
}

void ServerThreads::Beat(BootTime now) {
  if (beat_ns_ == 0 || now < next_beat_) return;
  next_beat_ = now + beat_ns_;
  if (pulses_.AllBeat(now, beat_ns_)) options_.supervisor->Alive();
}

// Sleeps until something comes, or the member's time has come. Workers that wait for what the
// backups have not are woken.
void ServerThreads::RunMember() {
  pthread_setname_np(pthread_self(), "kv-group");
  Member* const member = server_->member();
  std::vector<pollfd> fds;
  const auto poll_member = [&] {
    if (member->Poll(MachineBootTime())) server_->all_workers().Wake();
  };
  while (!member_stops_.load(std::memory_order_relaxed)) {
    poll_member();
    if (member->ended()) stop_->Ask();
    if (!member->Arm(MachineBootTime()).ok()) worker_failed_.store(true, std::memory_order_relaxed);
    server_->sync_wanted()->Take();
    poll_member();
    fds.assign(1, {server_->sync_wanted()->fd(), POLLIN, 0});
    for (const int fd : member->fds()) fds.push_back({fd, POLLIN, 0});
    WaitUntil(fds, member->ended() ? MachineBootTime() + kStopPollNs : member->next_at());
    member->Woken();
  }
}

// While it waits, it serves, members may join, and clients are told where to go. Nobody is waited
// for by a server that lost its device.
void ServerThreads::LeaveGroup() {
  Member* const member = server_->member();
  if (member == nullptr) return;
  const bool asked = asked_to_stop_.load(std::memory_order_relaxed);
  const int64_t wait_ns = asked ? options_.stop_wait_ns : 0;
  const BootTime begun_at = MachineBootTime();
  BootTime tell_at = begun_at;
  bool said = false;
  while (true) {
    const Member::Leaving leaving = member->Leave();
    if (leaving == Member::Leaving::kDone) return;
    const bool hands_over = leaving == Member::Leaving::kHandsOver;
    const Now now = clock_.Read();
    const int64_t waited_ns = MachineBootTime() - begun_at;
    if (waited_ns >= wait_ns + (hands_over ? kHandOverNsMax : 0)) break;
    if (!hands_over && waited_ns > kNsPerSecond && !std::exchange(said, true)) {
      LOG(WARNING) << "is to stop, and waits up to " << wait_ns / kNsPerSecond
                   << " s (--stop_wait_s) for another member that has the group's items. A second "
                      "SIGTERM ends it at once";
    }
    if (options_.supervisor != nullptr && MachineBootTime() >= tell_at) {
      tell_at = MachineBootTime() + kTellNs;
      options_.supervisor->NeedsTime("stops: waits for another member that has the group's items",
                                     kMoreTimeNs);
    }
    Beat(now.boot);
    server_->Poll(now);
    SleepControl(true);
  }
  const std::string words = LastWords(/*has_waited=*/wait_ns > 0);
  if (asked && !words.empty()) LOG(ERROR) << words;
}

// Without waiting it is not known what one has that is not primary: it may be joining.
std::string ServerThreads::LastWords(bool has_waited) const {
  const Member::Seen seen = server_->member()->Look();
  const bool leads = seen.role == Member::Role::kPrimary;
  if (!leads && !has_waited) return "";
  if (seen.role == Member::Role::kBackup) {
    return absl::StrCat("stops while it is in sync, since it could not leave in time: does ",
                        seen.primary, " serve, and is etcd there? If ", seen.primary,
                        " is gone, the group's items are lost but for what is on disks");
  }
  const uint64_t items = server_->Stats(clock_.Read()).items;
  if (items == 0) return "";
  const char* const kept = server_->disk() != nullptr
                               ? " are on no other member now. What this member's disk has of them "
                                 "is left: start it again first"
                               : " are LOST: no other member has them, and no disk";
  return absl::StrCat("stops although nobody has taken over from it",
                      has_waited ? " in time (--stop_wait_s): " : ": ", items, " items", kept);
}

void ServerThreads::RunControl() {
  pthread_setname_np(pthread_self(), "kv-control");
  bool stopping = false;
  BootTime give_up_at = BootTime::Never();
  // The connection manager is polled to the end: workers that destroy connections wait for events
  // to be acknowledged. A process that ends leaves no lease behind.
  while (running_.load(std::memory_order_acquire) > 0 ||
         (stopping && server_->HasLeases(clock_.Time()))) {
    const Now now = clock_.Read();
    while (server_->Poll(now)) {
    }
    Beat(now.boot);
    const bool failed = !server_->status().ok() || worker_failed_.load(std::memory_order_relaxed) ||
                        (server_->member() != nullptr && server_->member()->ended());
    if (!stopping && (SleepControl(false) || failed)) {
      stopping = true;
      stop_->Ask();  // also if nobody asked for it: see AwaitStop
      LeaveGroup();
      give_up_at = MachineBootTime() + kStopNsMax;
      if (options_.supervisor != nullptr) options_.supervisor->Stopping();
      server_->BeginStop();
    } else if (stopping) {
      SleepControl(true);
      if (now.boot > give_up_at) LOG(FATAL) << "the workers do not stop";
    }
  }
  status_ = server_->status();
  if (status_.ok() && worker_failed_.load(std::memory_order_relaxed)) {
    status_ = absl::UnavailableError(
        absl::StrCat("device ", server_->device().name, " lost a queue of the server"));
  }
}

}  // namespace gannet
