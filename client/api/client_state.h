#ifndef GANNET_CLIENT_API_CLIENT_STATE_H_
#define GANNET_CLIENT_API_CLIENT_STATE_H_

#include <gannet/client.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/driver.h"
#include "client/api/make_requests.h"

namespace gannet {

// What the methods of Client share.

// How long to wait between two tries for a lock that another holds.
inline constexpr int64_t kLockPauseFirstNs = 5 * kNsPerUs;
inline constexpr int64_t kLockPauseMaxNs = kNsPerMs;

inline Value MakeValue(const Op& op) { return {std::string(op.value), op.done.info}; }

class Client::State {
 public:
  State(std::unique_ptr<Engine> engine, std::unique_ptr<WakeFd> wake, const Options& options)
      : driver(std::move(engine), std::move(wake), options), deadline(options.deadline) {}

  int64_t TimeoutNs(std::optional<Client::Milliseconds> given) const {
    return gannet::TimeoutNs(given.value_or(deadline));
  }

  // Runs one request. Calls use(const Op&) if it succeeds.
  template <class F>
  absl::Status Run(absl::StatusOr<OpRequest> request, int64_t timeout_ns, F use) {
    if (driver.forked()) return ForkGuard::ForkedStatus();
    if (!request.ok()) return request.status();
    request->timeout_ns = timeout_ns;
    absl::Status status;
    driver.RunOne(*request, [&](const Op& op) {
      status = driver.MakeStatus(op);
      if (status.ok()) use(op);
    });
    return status;
  }

  // Answers a GET from a copy, without an operation. Calls use(std::string_view value, const
  // ItemInfo&) and returns true if there is one.
  template <class F>
  bool AnswerNear(std::string_view key, F use) {
    if (!AnswersNear()) return false;
    bool answered = false;
    driver.AnswerNear(
        0, 1, [key](size_t) { return key; },
        [&](size_t, std::string_view value, const ItemInfo& info) {
          use(value, info);
          answered = true;
        });
    return answered;
  }
  // The same for GETs of key_of(i), for each i below `n`; calls use(i, value, info).
  template <class KeyOf, class F>
  void AnswerNear(size_t n, KeyOf key_of, F use) {
    constexpr size_t kKeysPerLock = 256;
    for (size_t i = 0; i < n; i += kKeysPerLock) {
      driver.AnswerNear(i, std::min(i + kKeysPerLock, n), key_of, use);
    }
  }
  bool AnswersNear() const { return driver.has_near_cache() && !driver.forked(); }

  // When a call that begins now has to end.
  int64_t EndNs(std::optional<Client::Milliseconds> given) const {
    return driver.NowNs() + TimeoutNs(given);
  }

  // Runs `n` requests, as many at once as there is room for, with one deadline for all.
  // request_of(i) makes the request of number i. Returns one answer for each, in order:
  // answer_of(const Op&) if the operation succeeded, otherwise its error. A request that is not
  // valid is not sent, and the others are. At the deadline what is left ends without having begun.
  template <class RequestOf, class AnswerOf>
  auto RunMany(size_t n, int64_t end_ns, RequestOf request_of, AnswerOf answer_of) {
    using Answer = absl::StatusOr<decltype(answer_of(std::declval<const Op&>()))>;
    if (driver.forked()) return std::vector<Answer>(n, Answer(ForkGuard::ForkedStatus()));
    std::vector<Answer> answers(n);
    std::vector<OpRequest> requests;
    std::vector<size_t> answer_of_request;
    const size_t room = std::min<size_t>(n, driver.engine().slots());
    requests.reserve(room);
    answer_of_request.reserve(room);
    for (size_t i = 0; i < n;) {
      const int64_t left_ns = end_ns - driver.NowNs();
      if (left_ns <= 0) {
        EndLate(i, request_of, &answers);
        break;
      }
      requests.clear();
      answer_of_request.clear();
      for (; i < n && requests.size() < room; ++i) {
        absl::StatusOr<OpRequest> request = request_of(i);
        if (!request.ok()) {
          answers[i] = request.status();
          continue;
        }
        request->timeout_ns = left_ns;
        requests.push_back(*request);
        answer_of_request.push_back(i);
      }
      driver.Run(requests, [&](size_t k, const Op& op) {
        Answer& answer = answers[answer_of_request[k]];
        if (op.outcome == Outcome::kOk) {
          answer = answer_of(op);
        } else {
          answer = driver.MakeStatus(op);
        }
      });
    }
    return answers;
  }

  // Ends the requests from `first` on, whose time is over. Those of one server share a text: to
  // make 100,000 of them takes long.
  template <class RequestOf, class Answer>
  void EndLate(size_t first, RequestOf request_of, std::vector<Answer>* answers) {
    std::vector<absl::Status> late;  // by server
    for (size_t i = first; i < answers->size(); ++i) {
      const absl::StatusOr<OpRequest> request = request_of(i);
      if (!request.ok()) {
        (*answers)[i] = request.status();
        continue;
      }
      const Op op = driver.MakeLateOp(*request);
      if (op.request.server >= late.size()) late.resize(op.request.server + 1);
      absl::Status& status = late[op.request.server];
      if (status.ok()) status = driver.MakeStatus(op);
      (*answers)[i] = status;
    }
  }

  // Run one write, and return the new version, or the counter's new number.
  absl::StatusOr<uint64_t> Version(absl::StatusOr<OpRequest> request,
                                   std::optional<Client::Milliseconds> deadline) {
    uint64_t version = 0;
    absl::Status status = Run(std::move(request), TimeoutNs(deadline),
                              [&](const Op& op) { version = op.done.info.version; });
    if (!status.ok()) return status;
    return version;
  }
  absl::StatusOr<int64_t> Number(absl::StatusOr<OpRequest> request,
                                 std::optional<Client::Milliseconds> deadline) {
    int64_t number = 0;
    absl::Status status = Run(std::move(request), TimeoutNs(deadline),
                              [&](const Op& op) { number = op.done.counted; });
    if (!status.ok()) return status;
    return number;
  }

  // Tries to take a lock until it has it or the time is over. Calls use(const Op&) if it has it.
  template <class F>
  absl::StatusOr<Lock> Acquire(OpType type, std::string_view key, const LockOptions& options,
                               int64_t timeout_ns, F use);
  // Asks all servers at once. Calls answer(Report&, Op, Status) for each, to complete its report.
  template <class Report, class F>
  std::vector<Report> AskEach(OpType type, int64_t timeout_ns, F answer);

  // Asks a server for a list, page by page. append(const Op&) takes a page and returns the number
  // to go on from, or 0 at the end.
  template <class F>
  absl::Status ListAll(OpType type, uint32_t server, int64_t timeout_ns, F append);

  Driver driver;
  const Client::Milliseconds deadline;
};

template <class F>
absl::Status Client::State::ListAll(OpType type, uint32_t server, int64_t timeout_ns, F append) {
  const Engine& engine = driver.engine();
  const int64_t deadline_ns = engine.clock().MonotonicNs() + timeout_ns;
  for (uint64_t from = 0, next = 0;; from = next) {
    absl::StatusOr<OpRequest> request = ServerRequest(engine, type, server);
    if (request.ok()) request->position = from;
    const int64_t left_ns = std::max<int64_t>(deadline_ns - engine.clock().MonotonicNs(), 0);
    absl::Status status =
        Run(std::move(request), left_ns, [&](const Op& op) { next = append(op); });
    if (!status.ok() || next == 0) return status;
    if (next <= from) return absl::InternalError("the server's list does not end");
  }
}

template <class F>
absl::StatusOr<Lock> Client::State::Acquire(OpType type, std::string_view key,
                                            const LockOptions& options, int64_t timeout_ns, F use) {
  const ClientClock& clock = driver.engine().clock();
  const int64_t deadline_ns = clock.MonotonicNs() + timeout_ns;
  Lock lock{.key = std::string(key)};
  uint32_t holder = 0;
  for (int64_t pause_ns = kLockPauseFirstNs;; pause_ns = std::min(2 * pause_ns, kLockPauseMaxNs)) {
    bool acquired = false;
    const int64_t left_ns = deadline_ns - clock.MonotonicNs();
    absl::Status status =
        Run(LockRequest(type, key, options), std::max<int64_t>(left_ns, 0), [&](const Op& op) {
          acquired = op.done.found;
          lock.word = op.lock.word.word();
          lock.server = op.request.server;
          holder = op.lock.word.connection_id();
          if (acquired) use(op);
        });
    if (!status.ok() && holder == 0) return status;
    if (status.ok() && acquired) return lock;
    if (!status.ok() && !absl::IsDeadlineExceeded(status)) return status;
    if (deadline_ns - clock.MonotonicNs() <= pause_ns) {
      return absl::DeadlineExceededError(
          absl::StrCat("the lock is held, by connection ", holder, " of its server"));
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause_ns));
  }
}

template <class Report, class F>
std::vector<Report> Client::State::AskEach(OpType type, int64_t timeout_ns, F answer) {
  if (driver.forked()) {
    const size_t count = driver.engine().servers().count();
    return std::vector<Report>(count, {"", "", ForkGuard::ForkedStatus()});
  }
  // Those that there are now. In a cluster of groups there may be others a moment later.
  std::vector<ServerInfo> infos = driver.Info();
  std::vector<Report> reports;
  std::vector<OpRequest> requests(infos.size());
  for (uint32_t server = 0; server < requests.size(); ++server) {
    reports.push_back({infos[server].endpoint, infos[server].name, ForkGuard::ForkedStatus()});
    requests[server].type = type;
    requests[server].server = server;
    requests[server].timeout_ns = timeout_ns;
  }
  driver.Run(requests, [&](size_t server, const Op& op) {
    answer(reports[server], op, driver.MakeStatus(op));
  });
  // What a server is called may only be known now.
  infos = driver.Info();
  for (size_t server = 0; server < std::min(infos.size(), reports.size()); ++server) {
    if (infos[server].endpoint == reports[server].endpoint) {
      reports[server].name = infos[server].name;
    }
  }
  return reports;
}

}  // namespace gannet

#endif  // GANNET_CLIENT_API_CLIENT_STATE_H_
