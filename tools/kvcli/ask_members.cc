#include "tools/kvcli/ask_members.h"

#include <poll.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/auth/auth_file.h"
#include "common/auth/handshake.h"
#include "common/auth/handshake_mac.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/base/status_macros.h"
#include "common/protocol/connect.h"
#include "common/protocol/limits.h"
#include "common/rdma/address.h"
#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/device.h"
#include "common/rdma/name_lookup.h"
#include "common/rdma/status.h"

namespace gannet::kvcli {
namespace {

using Kind = MemberAnswer::Kind;

constexpr uint32_t kCompletions = 8;
constexpr int64_t kAskNs = kNsPerSecond;  // for all together
constexpr int64_t kLookMs = 20;           // for names

MemberAnswer OfRefusal(const Reject& reject) {
  const std::string reason = RejectReason(reject);
  switch (static_cast<RejectCode>(reject.code)) {
    case RejectCode::kStanding:
      if (const auto standing = ParseMemberStanding(reason)) {
        return {.kind = Kind::kTold, .why = "", .standing = *standing};
      }
      break;
    case RejectCode::kStarting:
      return {.kind = Kind::kStarts, .why = reason};
    case RejectCode::kMalformed:  // of a version that does not know the question, or of no group
      if (absl::StrContains(reason, "for features")) {
        return {.kind = Kind::kLives, .why = "its version does not say what it is"};
      }
      break;
    default:
      break;
  }
  return {.kind = Kind::kLives, .why = reason};
}

MemberAnswer OfFailure(const absl::Status& status) {
  std::string why(status.message());
  if (absl::StrContains(why, "nobody listens")) {
    return {.kind = Kind::kDead, .why = "nobody listens there"};
  }
  if (absl::StrContains(why, "softverbs reaches servers on this host only")) {
    return {.kind = Kind::kNotAsked,
            .why = "softverbs, the only device here, reaches other hosts with SOFTVERBS_NET only"};
  }
  if (absl::IsDeadlineExceeded(status)) why = "no answer within a second";
  return {.kind = Kind::kSilent, .why = std::move(why)};
}

// The question at one address. It is a connection request that is always refused.
class Question {
 public:
  Question(const SocketAddress& to, std::optional<AuthKey> key, int64_t deadline_ns)
      : to_(to), key_(std::move(key)) {
    auto started = Connector::Start({.to = to, .deadline_ns = deadline_ns});
    if (started.ok()) {
      connector_ = *std::move(started);
    } else {
      answer_ = OfFailure(started.status());
    }
  }
  ~Question() {
    // Nothing was posted, so nothing is to be waited for.
    if (connector_ != nullptr) connector_->connection()->BeginDrain(0);
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;

  void Poll(int64_t now_ns) {
    if (answer_) return;
    switch (connector_->Poll(now_ns)) {
      case Connector::Step::kResolving:
      case Connector::Step::kConnecting:
        return;
      case Connector::Step::kResolved:
        if (const absl::Status status = Ask(); !status.ok()) answer_ = OfFailure(status);
        return;
      case Connector::Step::kEstablished:
      case Connector::Step::kClosed:
        answer_ = {.kind = Kind::kLives, .why = "it takes the question for a client"};
        return;
      case Connector::Step::kFailed: {
        const auto reject = DecodeReject(connector_->private_data());
        const bool refused = connector_->refused() && reject.ok();
        answer_ = refused ? OfRefusal(*reject) : OfFailure(connector_->status());
        return;
      }
    }
  }
  int fd() const { return connector_->fd(); }
  const std::optional<MemberAnswer>& answer() const { return answer_; }

 private:
  absl::Status Ask() {
    GANNET_ASSIGN_OR_RETURN(const Device device, DescribeDevice(connector_->verbs()));
    pd_.reset(ibv_alloc_pd(device.verbs));
    if (pd_ == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
    GANNET_ASSIGN_OR_RETURN(completions_,
                            CompletionQueue::Create(device.verbs, kCompletions, false));
    GANNET_RETURN_IF_ERROR(
        connector_->CreateConnection({.queue_pair = {.pd = pd_.get(), .send_wrs = 1},
                                      .caps = device.caps,
                                      .completions = completions_.get()}));
    ConnectRequest request = MakeConnectRequest(0, 0, UnpredictableNonce(), MachineWallTime());
    request.features = kConnectStanding;
    AuthenticateRequest(key_, to_.NetworkBytes(), &request);
    return connector_->Connect(std::as_bytes(std::span(&request, 1)));
  }

  const SocketAddress to_;
  const std::optional<AuthKey> key_;
  std::optional<MemberAnswer> answer_;
  Handle<ibv_pd> pd_;
  std::unique_ptr<CompletionQueue> completions_;
  std::unique_ptr<Connector> connector_;
};

// One member: its name, until that is looked up, and then a question at each of its addresses.
struct Asked {
  std::optional<NameLookup> lookup;  // nullopt: its address is a number
  std::vector<std::unique_ptr<Question>> questions;

  bool done() const {
    return !questions.empty() &&
           std::ranges::all_of(questions, [](const auto& it) { return it->answer().has_value(); });
  }
  // A member that answers at one of its addresses lives.
  MemberAnswer answer() const {
    MemberAnswer best = {.kind = Kind::kSilent, .why = "its name is not known here"};
    for (bool first = true; const auto& question : questions) {
      if (!question->answer()) continue;
      if (first || question->answer()->kind > best.kind) best = *question->answer();
      first = false;
    }
    return best;
  }
};

}  // namespace

std::vector<MemberAnswer> AskMembers(const std::vector<std::string>& addresses,
                                     const std::string& auth_file) {
  std::optional<AuthKey> key;
  const auto file = AuthFile::OpenIfNamed(auth_file);
  if (!file.ok()) {
    return {addresses.size(), {.why = std::string(file.status().message())}};
  }
  if (*file != nullptr) key = (*file)->keys().front();
  const int64_t deadline_ns = MonotonicNs() + kAskNs;
  std::vector<Asked> all(addresses.size());
  for (size_t i = 0; i < all.size(); ++i) {
    if (const auto to = NumericAddress(addresses[i], kDefaultPort)) {
      all[i].questions.push_back(std::make_unique<Question>(*to, key, deadline_ns));
      continue;
    }
    const auto resolve = [text = addresses[i]] { return ResolveAll(text, kDefaultPort); };
    all[i].lookup.emplace(resolve);
    all[i].lookup->Ask();
  }
  while (true) {
    const int64_t now_ns = MonotonicNs();
    std::vector<pollfd> fds;
    bool done = true;
    bool looks = false;
    for (Asked& asked : all) {
      if (asked.questions.empty()) {
        for (const SocketAddress& to :
             asked.lookup->Take().value_or(std::vector<SocketAddress>())) {
          asked.questions.push_back(std::make_unique<Question>(to, key, deadline_ns));
        }
        looks |= asked.questions.empty();
      }
      for (const auto& question : asked.questions) {
        question->Poll(now_ns);
        if (!question->answer()) fds.push_back({question->fd(), POLLIN, 0});
      }
      done &= asked.done();
    }
    if (done || now_ns >= deadline_ns) break;
    const int64_t left_ms = (deadline_ns - now_ns) / kNsPerMs + 1;
    poll(fds.data(), fds.size(), static_cast<int>(looks ? std::min(left_ms, kLookMs) : left_ms));
  }
  std::vector<MemberAnswer> answers;
  for (const Asked& asked : all) answers.push_back(asked.answer());
  return answers;
}

}  // namespace gannet::kvcli
