#include "tools/kvload/redis_store.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <initializer_list>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "tools/kvload/host_and_port.h"

namespace gannet::kvload {
namespace {

struct RedisFree {
  void operator()(redisContext* context) const { redisFree(context); }
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using RedisConnection = std::unique_ptr<redisContext, RedisFree>;
using Reply = std::unique_ptr<redisReply, RedisFree>;

absl::StatusOr<RedisConnection> ConnectToRedis(const LoadOptions& options) {
  const std::string& server = options.servers.front();
  GANNET_ASSIGN_OR_RETURN(const HostAndPort to, ParseHostAndPort(server));
  constexpr timeval kTimeout{3, 0};
  RedisConnection connection(redisConnectWithTimeout(to.host.c_str(), to.port, kTimeout));
  if (connection == nullptr) return absl::ResourceExhaustedError("no memory for a connection");
  if (connection->err == 0) return connection;
  return absl::UnavailableError(absl::StrCat("no Redis at ", server, ": ", connection->errstr,
                                             "; start one with: redis-server --port ", to.port,
                                             " --save '' --appendonly no"));
}

absl::StatusCode CodeOf(const redisReply& error) {
  return std::string_view(error.str, error.len).starts_with("OOM")
             ? absl::StatusCode::kResourceExhausted
             : absl::StatusCode::kInternal;
}

// A non-blocking connection. Its answers come in the order of its operations.
class Lane {
 public:
  explicit Lane(RedisConnection connection) : connection_(std::move(connection)) {
    fcntl(connection_->fd, F_SETFL, fcntl(connection_->fd, F_GETFL) | O_NONBLOCK);
    connection_->flags &= ~REDIS_BLOCK;
  }

  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) {
    const char* words[] = {"GET", key.data()};
    const size_t sizes[] = {3, key.size()};
    return Append(words, sizes, 2, {user_data, OpType::kGet, out});
  }

  // A command of any words. `type` says how its answer is to be read.
  absl::Status Send(std::initializer_list<std::string_view> command, OpType type,
                    std::span<std::byte> out, uint64_t user_data) {
    const char* words[kWordsMax];
    size_t sizes[kWordsMax];
    size_t count = 0;
    for (const std::string_view word : command) {
      if (word.data() == nullptr) continue;
      words[count] = word.data();
      sizes[count++] = word.size();
    }
    return Append(words, sizes, static_cast<int>(count), {user_data, type, out});
  }

  // Writes and reads as much as the socket allows now. A failure stays in connection_->err.
  size_t Poll(std::span<Completion> out) {
    if (pending_.empty()) return 0;
    if (written_ == 0) redisBufferWrite(connection_.get(), &written_);
    if (connection_->err == 0) redisBufferRead(connection_.get());
    const size_t done = TakeAnswers(out);
    return done > 0 || connection_->err == 0 ? done : FailAll(out);
  }

  // Returns the socket events to wait for. If no operation is in flight, the descriptor is
  // negative, and poll ignores it.
  pollfd Awaited() const {
    const auto events = static_cast<short>(written_ ? POLLIN : POLLIN | POLLOUT);
    return {pending_.empty() ? -1 : connection_->fd, events, 0};
  }

  void GiveUp() {
    connection_->err = REDIS_ERR_OTHER;
    late_ = true;
  }

  std::string_view lost() const {
    return connection_->err == 0 || late_ ? std::string_view() : connection_->errstr;
  }

 private:
  static constexpr size_t kWordsMax = 8;

  struct Pending {
    uint64_t user_data;
    OpType type;
    std::span<std::byte> out;
  };

  absl::Status Append(const char** words, const size_t* sizes, int count, const Pending& pending) {
    if (redisAppendCommandArgv(connection_.get(), count, words, sizes) != REDIS_OK) {
      return absl::UnavailableError(connection_->errstr);
    }
    pending_.push_back(pending);
    written_ = 0;
    return absl::OkStatus();
  }

  size_t TakeAnswers(std::span<Completion> out) {
    size_t done = 0;
    void* answer = nullptr;
    while (done < out.size() && !pending_.empty() &&
           redisGetReplyFromReader(connection_.get(), &answer) == REDIS_OK && answer != nullptr) {
      const Reply reply(static_cast<redisReply*>(answer));
      out[done++] = Finish(pending_.front(), *reply);
      pending_.pop_front();
    }
    return done;
  }

  static Completion Finish(const Pending& pending, const redisReply& reply) {
    Completion done{.user_data = pending.user_data, .type = pending.type};
    if (reply.type == REDIS_REPLY_ERROR) {
      done.code = CodeOf(reply);
    } else if (pending.type == OpType::kGet && reply.type == REDIS_REPLY_STRING) {
      done.found = true;
      done.info.value_bytes = static_cast<uint32_t>(reply.len);
      std::copy_n(reply.str, std::min<size_t>(reply.len, pending.out.size()),
                  reinterpret_cast<char*>(pending.out.data()));
    } else if (pending.type == OpType::kIncr) {
      done.counted = reply.integer;
    } else if (pending.type == OpType::kPut && reply.type == REDIS_REPLY_NIL) {
      done.code = absl::StatusCode::kNotFound;  // SET with a condition that failed
    } else {
      done.found = reply.integer > 0;
    }
    return done;
  }

  size_t FailAll(std::span<Completion> out) {
    size_t done = 0;
    for (; done < out.size() && !pending_.empty(); pending_.pop_front()) {
      const auto code =
          late_ ? absl::StatusCode::kDeadlineExceeded : absl::StatusCode::kUnavailable;
      out[done++] = {.user_data = pending_.front().user_data, .code = code};
    }
    return done;
  }

  RedisConnection connection_;
  bool late_ = false;
  int written_ = 1;  // not 0: everything appended was written
  std::deque<Pending> pending_;
};

// Uses several lanes, so that the server works on one while this thread works on another. The
// operation's slot chooses its lane, which keeps the lanes equally full.
class RedisBackend : public Backend {
 public:
  RedisBackend(std::vector<RedisConnection> connections, const LoadOptions& options)
      : deadline_ns_(options.deadline.count() * kNsPerMs) {
    lanes_.reserve(connections.size());
    for (RedisConnection& connection : connections) lanes_.emplace_back(std::move(connection));
    awaited_.resize(lanes_.size());
  }

  absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) override {
    return LaneOf(user_data).Get(key, out, user_data);
  }

  absl::Status Put(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   uint64_t user_data) override {
    return Set(key, value, ttl, {}, user_data);
  }

  absl::Status StartChange(const Change& change, uint64_t user_data) override {
    Lane& lane = LaneOf(user_data);
    const std::string ttl_ms = TextOf(change.ttl);
    const auto send = [&](std::initializer_list<std::string_view> command, OpType type) {
      return lane.Send(command, type, change.out, user_data);
    };
    switch (change.kind) {
      case OpKind::kAdd:
        return Set(change.key, change.value, change.ttl, "NX", user_data);
      case OpKind::kReplace:
        return Set(change.key, change.value, change.ttl, "XX", user_data);
      case OpKind::kDelete:
        return send({"DEL", change.key}, OpType::kDelete);
      case OpKind::kIncr:
        return send({"INCR", change.key}, OpType::kIncr);
      case OpKind::kDecr:
        return send({"DECR", change.key}, OpType::kIncr);
      case OpKind::kAppend:
        return send({"APPEND", change.key, change.value}, OpType::kAppend);
      case OpKind::kTouch:
        if (ttl_ms.empty()) return send({"PERSIST", change.key}, OpType::kTouch);
        return send({"PEXPIRE", change.key, ttl_ms}, OpType::kTouch);
      case OpKind::kGetAndTouch:
        if (ttl_ms.empty()) return send({"GETEX", change.key, "PERSIST"}, OpType::kGet);
        return send({"GETEX", change.key, "PX", ttl_ms}, OpType::kGet);
      default:
        return Backend::StartChange(change, user_data);
    }
  }

  size_t Poll(std::span<Completion> out) override { return Wait(out, 0); }
  size_t Wait(std::span<Completion> out, int64_t deadline_ns) override {
    size_t done = PollLanes(out);
    if (done == 0) {
      Sleep(deadline_ns);
      done = PollLanes(out);
    }
    if (done > 0) progress_ns_ = 0;
    return done;
  }

  std::string_view lost() const override {
    for (const Lane& lane : lanes_) {
      if (!lane.lost().empty()) return lane.lost();
    }
    return {};
  }

 private:
  // Empty: it lives for ever.
  static std::string TextOf(std::chrono::milliseconds ttl) {
    return ttl.count() > 0 ? absl::StrCat(ttl.count()) : "";
  }
  // `condition` is NX, XX or none.
  absl::Status Set(std::string_view key, std::string_view value, std::chrono::milliseconds ttl,
                   std::string_view condition, uint64_t user_data) {
    const std::string ttl_ms = TextOf(ttl);
    const std::string_view px = ttl_ms.empty() ? std::string_view() : "PX";
    const std::string_view life = ttl_ms.empty() ? std::string_view() : ttl_ms;
    return LaneOf(user_data).Send({"SET", key, value, px, life, condition}, OpType::kPut, {},
                                  user_data);
  }
  Lane& LaneOf(uint64_t user_data) { return lanes_[user_data % lanes_.size()]; }

  size_t PollLanes(std::span<Completion> out) {
    size_t done = 0;
    for (Lane& lane : lanes_) done += lane.Poll(out.subspan(done));
    return done;
  }

  // Sleeps until a socket is ready, at most `ns` nanoseconds.
  void Sleep(int64_t ns) {
    bool awaits = false;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      awaited_[i] = lanes_[i].Awaited();
      awaits |= awaited_[i].fd >= 0;
    }
    if (!awaits) progress_ns_ = 0;
    const int64_t now_ns = MonotonicNs();
    if (awaits && progress_ns_ == 0) progress_ns_ = now_ns;
    const timespec time{ns / kNsPerSecond, ns % kNsPerSecond};
    if (ppoll(awaited_.data(), awaited_.size(), &time, nullptr) == 0 && awaits &&
        now_ns - progress_ns_ > deadline_ns_) {
      for (Lane& lane : lanes_) lane.GiveUp();
    }
  }

  std::vector<Lane> lanes_;
  std::vector<pollfd> awaited_;
  const int64_t deadline_ns_;
  int64_t progress_ns_ = 0;  // when the current wait for an answer began; 0: it does not wait
};

// Returns the number after "NAME:" in the answer of INFO, or 0 if there is none.
double NumberIn(std::string_view info, std::string_view name) {
  const size_t at = info.find(absl::StrCat("\n", std::string(name), ":"));
  if (at == std::string_view::npos) return 0;
  const char* begin = info.data() + at + name.size() + 2;
  double number = 0;
  std::from_chars(begin, info.data() + info.size(), number);
  return number;
}

class RedisStore : public StoreUnderLoad {
 public:
  RedisStore(const LoadOptions& options, RedisConnection connection)
      : options_(options), connection_(std::move(connection)) {}

  absl::StatusOr<std::unique_ptr<Backend>> Connect(uint32_t) override {
    std::vector<RedisConnection> connections;
    for (uint32_t i = 0; i < options_.connections; ++i) {
      GANNET_ASSIGN_OR_RETURN(RedisConnection connection, ConnectToRedis(options_));
      connections.push_back(std::move(connection));
    }
    return std::make_unique<RedisBackend>(std::move(connections), options_);
  }

  absl::StatusOr<ServerTotals> Totals() override {
    const Reply reply(static_cast<redisReply*>(redisCommand(connection_.get(), "INFO")));
    if (reply == nullptr || reply->type != REDIS_REPLY_STRING) {
      return absl::UnavailableError("Redis does not answer INFO");
    }
    const std::string_view info(reply->str, reply->len);
    constexpr double kUsPerSecond = 1e6;
    ServerTotals totals;
    totals.rpcs = static_cast<uint64_t>(NumberIn(info, "total_commands_processed")) - asked_++;
    totals.cpu_us = static_cast<uint64_t>(
        (NumberIn(info, "used_cpu_user") + NumberIn(info, "used_cpu_sys")) * kUsPerSecond);
    return totals;
  }

  Transport transport() const override { return {"tcp", "kernel-tcp"}; }

 private:
  const LoadOptions options_;
  const RedisConnection connection_;
  uint64_t asked_ = 0;  // INFO is a command too
};

}  // namespace

absl::StatusOr<std::unique_ptr<StoreUnderLoad>> OpenRedis(const LoadOptions& options) {
  GANNET_ASSIGN_OR_RETURN(RedisConnection connection, ConnectToRedis(options));
  auto store = std::make_unique<RedisStore>(options, std::move(connection));
  GANNET_RETURN_IF_ERROR(store->Totals().status());
  return store;
}

}  // namespace gannet::kvload
