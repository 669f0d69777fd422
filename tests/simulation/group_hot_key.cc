// GroupWorld: a key that all clients answer from copies while its primary loses its place.
//
//   PUT -> all GET it again and again -> copies answer -> the primary loses its place; PUTs -> ...
//
// Otherwise its leases would nearly always end by a write, long before their primary's lease.

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tests/simulation/group_world.h"

namespace gannet::simulation {
namespace {

// A round that never comes to answers from copies ends then: a key that was written is not leased
// for so long, and longer if it is written again soon.
constexpr int64_t kWarmNsMax = 3 * kNsPerSecond;
constexpr int64_t kWrittenNsMax = 2 * kNsPerMs;
constexpr uint64_t kHotGets = 400;
constexpr uint64_t kHotAnswersMax = 200;

}  // namespace

uint64_t GroupWorld::NearAnswers() const {
  return std::accumulate(
      guests_.begin(), guests_.end(), uint64_t{0},
      [](uint64_t sum, const Guest& guest) { return sum + guest.client->near_answers(); });
}

void GroupWorld::TakeHotTurn() {
  if (!acting_) return;
  const bool over = run_->now_ns() >= hot_until_ns_;
  if (hot_answers_ == 0) {
    if (!hot_writers_.empty()) KeepReadingHot();
    WriteHotThere();
    if (over) BeginHotRound();
    return;
  }
  const bool answered = NearAnswers() >= hot_answers_;
  const std::optional<uint32_t> primary = Primary(0);
  if (!over && (!answered || !primary)) return KeepReadingHot();
  hot_answers_ = 0;
  const int64_t lease_ns = int64_t{scenario_.groups.front().lease_ms} * kNsPerMs;
  hot_until_ns_ = run_->now_ns() + 2 * lease_ns + static_cast<int64_t>(run_->Below(2 * lease_ns));
  if (!primary) return;
  happened_.unseated += answered;
  Unseat(*primary);
}

void GroupWorld::KeepReadingHot() {
  for (Guest& guest : guests_) {
    if (guest.client->hurries()) continue;
    guest.client->ReadHot(kHotGets);
    guest.next_act_ns = std::min(guest.next_act_ns, run_->now_ns() + ShortGapNs(run_));
  }
}

void GroupWorld::BeginHotRound() {
  if (happened_.hot_rounds++ == 0) WriteHotSoon(run_->Below(guests_.size()), 1);
  hot_answers_ = NearAnswers() + 1 + run_->Below(kHotAnswersMax);
  hot_until_ns_ = run_->now_ns() + kWarmNsMax;
}

void GroupWorld::Unseat(uint32_t primary) {
  const int64_t lease_ns = int64_t{scenario_.groups.front().lease_ms} * kNsPerMs;
  const int64_t long_ns = lease_ns + static_cast<int64_t>(run_->Below(2 * lease_ns));
  hot_epoch_ = register_.now(0).epoch;
  const uint64_t what = run_->Below(8);
  run_->Note(absl::StrCat("node ", primary, " is to lose its place: ", what));
  if (what < 4) return Split(primary, run_->now_ns() + long_ns);
  hot_writers_ = {run_->Below(guests_.size()), run_->Below(guests_.size())};
  const uint64_t other = (primary + 1 + run_->Below(servers_.size() - 1)) % servers_.size();
  switch (what) {
    case 4:
    case 5:
      return register_.WantSuccessor(0, GroupServer::NameOf(static_cast<uint32_t>(other)));
    case 6:
      Kill(primary);
      return;
    default:
      standing_[primary].stop_next_ns = long_ns;
      standing_[primary].reads_left = 0;
  }
}

// A primary and some clients are on one side of the network, all others on the other side.
void GroupWorld::Split(uint32_t primary, int64_t until_ns) {
  const auto cut = [&](uint32_t a, uint32_t b) {
    Cut(a, b, until_ns);
    Cut(b, a, until_ns);
  };
  for (uint32_t other = 0; other < servers_.size(); ++other) cut(primary, other);
  hot_writers_.clear();
  const uint64_t far = run_->Below(guests_.size());  // at least this one
  for (size_t i = 0; i < guests_.size(); ++i) {
    if (i != far && !run_->OneIn(3)) {
      for (uint32_t other = 0; other < servers_.size(); ++other) {
        if (other != primary) cut(guests_[i].node, other);
      }
      continue;
    }
    cut(guests_[i].node, primary);
    hot_writers_.push_back(i);
  }
}

// Once another one is primary, some clients write as soon as they have found it. Who is cut off
// from the former one would only give that up when it has asked for a lease in vain.
void GroupWorld::WriteHotThere() {
  if (hot_writers_.empty() || register_.now(0).epoch == hot_epoch_) return;
  for (const size_t guest : hot_writers_) {
    run_->OnNode(guests_[guest].node);
    if (!Stands(guests_[guest].node) && guests_[guest].client->ready()) {
      guests_[guest].client->Break();
    }
    WriteHotSoon(guest, kWrittenNsMax);
  }
  hot_writers_.clear();
}

void GroupWorld::WriteHotSoon(size_t guest, int64_t ns_max) {
  Later(run_->now_ns() + static_cast<int64_t>(run_->Below(ns_max)), [this, guest] {
    if (!acting_ || Stands(guests_[guest].node)) return;
    run_->OnNode(guests_[guest].node);
    guests_[guest].client->PutHot();
  });
}

}  // namespace gannet::simulation
