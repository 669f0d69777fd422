// World: the trials at the end of a run.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/server_time.h"
#include "tests/simulation/world.h"

namespace gannet::simulation {
namespace {

constexpr int64_t kSettleNsMax = 8 * kNsPerSecond;
// Long enough for all connecting clients to wait for the workers at once.
constexpr int64_t kStormNs = 50 * kNsPerMs;
// A trial of refusals needs at least so many refused peers.
constexpr uint32_t kRefused = 3;

// A worker has four buffers for long values, so one is left.
constexpr int kBesiegers = 3;
constexpr uint32_t kShortBytes = 1000;
constexpr uint32_t kLongBytes = 4'040;  // too long for a reply, and not large
constexpr int64_t kAnswerNsMax = 50 * kNsPerMs;
// More than there are of any long buffers.
constexpr uint32_t kBatchGets = 100;
constexpr std::string_view kBatchKey = "batch";
constexpr uint64_t kBatchKeyLivesMs = 3'600'000;
// Twice the silence after which a peer is dead.
constexpr int64_t kCutOffNsMax = 2 * int64_t{kSilenceMs} * kNsPerMs;

}  // namespace

RudePeer* World::Invite(RudePeer::Kind kind) {
  peers_.push_back(std::make_unique<RudePeer>(kind, server_.endpoint(), run_, &history_));
  return peers_.back().get();
}

// Lets more peers connect at once than the server takes.
void World::CheckRefusals() {
  run_->SetFaults("");
  const uint64_t before = server_.sessions();
  const uint64_t room = uint64_t{scenario_.server.connections_max} * scenario_.server.workers;
  for (size_t part = 1; part < server_.parts(); ++part) {
    server_.Stall(part, run_->now_ns() + kStormNs);
  }
  std::vector<RudePeer*> storm;
  while (storm.size() + before < room + kRefused) {
    storm.push_back(Invite(RudePeer::Kind::kSilent));
  }
  const auto settled = [](const RudePeer* peer) { return peer->established() || peer->refused(); };
  pace_.StepUntil(run_->now_ns() + kSettleNsMax,
                  [&] { return std::all_of(storm.begin(), storm.end(), settled); });
  const auto accepted = static_cast<uint64_t>(std::count_if(
      storm.begin(), storm.end(), [](const RudePeer* peer) { return peer->established(); }));
  if (over() || server_.sessions() <= before + accepted) return;
  run_->Fail(Check::kRefusals,
             absl::StrCat("there were ", before, " sessions, ", accepted,
                          " more were accepted, and there are ", server_.sessions()));
}

// Peers ask for values, and take no replies. Another peer must still be answered at once if there
// are more buffers than besiegers, and told of a miss in any case. The besiegers must be
// disconnected.
void World::CheckSiege() {
  run_->SetFaults("");
  const ServerTime time = server_.now().server_time;
  const auto puts = [&](std::string_view key, const std::string& value) {
    return server_.writes().Put(key, value, {}, {}, time).outcome.status == ReplyStatus::kOk;
  };
  const bool put = puts(RudePeer::kShortKey, std::string(kShortBytes, 's')) &&
                   puts(RudePeer::kLongKey, std::string(kLongBytes, 'l'));
  if (!put) return;  // the store is full
  RudePeer* polite = Invite(RudePeer::Kind::kPolite);
  for (int i = 0; i < kBesiegers; ++i) {
    RudePeer* besieger = Invite(RudePeer::Kind::kBesieges);
    pace_.StepUntil(run_->now_ns() + kSettleNsMax, [&] {
      return (besieger->established() && besieger->sent_all()) || besieger->cut_off();
    });
  }
  pace_.StepUntil(run_->now_ns() + kAnswerNsMax, [] { return false; });
  const int64_t besieged_ns = run_->now_ns();
  Ask(polite, Opcode::kGet, "nothing", ReplyStatus::kNotFound);
  if (scenario_.server.reply_buffers > kBesiegers) {
    Ask(polite, Opcode::kStats, "", ReplyStatus::kOk);
    Ask(polite, Opcode::kGet, std::string(RudePeer::kShortKey), ReplyStatus::kOk);
  }
  Ask(polite, Opcode::kGet, std::string(RudePeer::kLongKey), ReplyStatus::kOk);
  pace_.StepUntil(besieged_ns + kCutOffNsMax, [] { return false; });
  if (over()) return;
  for (const auto& peer : peers_) {
    if (peer->cut_off() != (peer.get() == polite)) continue;
    return run_->Fail(Check::kSiege, peer.get() == polite
                                         ? "a polite peer was cut off"
                                         : "a peer that takes no replies was not cut off");
  }
}

// A client GETs a value in a batch that needs more long buffers than it has. All of these GETs must
// succeed (Check::kPatience). Half of the runs' clients ask by RPC.
void World::CheckBatch() {
  run_->SetFaults("");
  peers_.clear();
  const ServerTime time = server_.now().server_time;
  const ItemAttributes attributes{.expiry = Expiry::At(time + kBatchKeyLivesMs)};
  const WriteOutcome put =
      server_.writes().Put(kBatchKey, std::string(kLongBytes, 'b'), attributes, {}, time).outcome;
  if (put.status != ReplyStatus::kOk) return;  // the store is full
  SimulatedClient::Options options = NewClientOptions();
  options.depth = kBatchGets;
  options.completions = 0;
  options.server_clocks = run_->OneIn(2);
  guests_.push_back({NewClient(options)});
  pace_.StepUntil(run_->now_ns() + kSettleNsMax, [this] { return guests_.back().client->ready(); });
  pace_.StepUntil(run_->now_ns() + kAnswerNsMax, [] { return false; });
  guests_.back().client->BeginBatch(kBatchKey, kBatchGets);
  pace_.StepUntil(run_->now_ns() + kSettleNsMax, [this] { return AllIdle(); });
}

void World::Ask(RudePeer* peer, Opcode opcode, const std::string& key, ReplyStatus expected) {
  if (over()) return;
  peer->Ask(opcode, key);
  pace_.StepUntil(run_->now_ns() + kAnswerNsMax, [peer] { return peer->answer().has_value(); });
  const auto& answer = peer->answer();
  if (over() || (answer && answer->status == static_cast<uint8_t>(expected))) return;
  run_->Fail(Check::kSiege,
             absl::StrCat("request ", static_cast<int>(opcode), " of '", key, "' was answered ",
                          answer ? static_cast<int>(answer->status) : -1, " during a siege"));
}

}  // namespace gannet::simulation
