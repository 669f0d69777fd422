#include "tests/simulation/mute_world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gannet::simulation {
namespace {

constexpr int64_t kStepNs = 500 * kNsPerUs;
// Within this time the client must find that the server is mute, and recover.
constexpr int64_t kRecoveryNs = 8 * kNsPerSecond;
// An operation that nobody waits for any more must not keep its slot longer.
constexpr int64_t kRoomNsMax = 50 * kNsPerMs;

SimulatedClient::Options ClientOptions(Run* run, const std::string& endpoint) {
  return {.number = 1,
          .endpoint = endpoint,
          .keys = 4,
          .depth = static_cast<uint32_t>(run->LogUniform(1, 16)),
          .signal_every = SendChain::kMax,
          .value_bytes_max = 20'000,
          .hasty_percent = 100,
          .room_ns_max = kRoomNsMax};
}

}  // namespace

MuteWorld::MuteWorld(Run* run)
    : run_(run),
      history_(run, 0, kKeysMax),
      client_(
          [&] {
            server_.grant().credits = static_cast<uint16_t>(run->LogUniform(1, 32));
            return ClientOptions(run, server_.endpoint());
          }(),
          run, &history_, &health_) {
  // Writes are not there to be read: the region stays as it is.
  server_.answer = [this](const FakeServer::Request& request) { return Answer(request); };
}

std::optional<ReplyHeader> MuteWorld::Answer(const FakeServer::Request& request) {
  if (mute_) return std::nullopt;
  if (request.opcode() == Opcode::kGet) {
    return FakeServer::ReplyTo(request, ReplyStatus::kNotFound);
  }
  ReplyHeader reply = FakeServer::ReplyTo(request);
  const Opcode opcode = request.opcode();
  const bool writes = opcode == Opcode::kPut || opcode == Opcode::kDelete ||
                      (opcode >= Opcode::kAppend && opcode <= Opcode::kTouch);
  if (writes) reply.write.version = ++version_;
  return reply;
}

void MuteWorld::Execute() {
  StepUntil(run_->now_ns() + kNsPerSecond, false);
  for (uint64_t n = 1 + run_->Below(3); n > 0 && !run_->failed(); --n) {
    mute_ = false;
    StepUntil(run_->now_ns() + run_->LogUniform(kNsPerMs, kNsPerSecond), true);
    mute_ = true;
    StepUntil(run_->now_ns() + run_->LogUniform(20 * kNsPerMs, 4 * kNsPerSecond), true);
  }
  mute_ = false;
  StepUntil(run_->now_ns() + kRecoveryNs, false);
  if (run_->failed()) return;
  if (!client_.ready()) run_->Fail(Check::kConnects, "the client is not connected");
  if (client_.busy() > 0) {
    run_->Fail(Check::kEverythingBack,
               absl::StrCat("the client of a server that was mute: ", client_.busy()));
  }
}

void MuteWorld::StepUntil(int64_t until_ns, bool acting) {
  int64_t next_act_ns = 0;
  while (!run_->failed() && run_->now_ns() < until_ns) {
    run_->StepDevice(std::min(until_ns, run_->now_ns() + kStepNs));
    health_.ExcuseBreaks(run_->now_ns());  // the client may break a mute connection
    server_.Step();
    client_.Poll();
    if (!acting || run_->now_ns() < next_act_ns) continue;
    client_.Act(false);
    next_act_ns = run_->now_ns() + run_->LogUniform(kStepNs, 50 * kNsPerMs);
  }
}

std::string MuteWorld::ToString() const {
  return absl::StrCat("a server that is mute at times, credits ", client_.credits());
}

}  // namespace gannet::simulation
