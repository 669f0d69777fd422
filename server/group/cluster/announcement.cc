// When nodes/N is written, and by whom: Judge says whether this process has the name, Due whether
// anything has changed, Pause how long a change that is only for people may wait. A write compares
// the revision, so a late one changes nothing.

#include "server/group/cluster/announcement.h"

#include <algorithm>
#include <utility>

#include "common/protocol/versions.h"
#include "glog/logging.h"

namespace gannet {

void Announcement::Saw(const NodeInfo& seen, int64_t mod_revision) {
  if (mod_revision <= mod_revision_) return;
  mod_revision_ = mod_revision;
  seen_ = seen;
  Judge(seen);
}

void Announcement::Judge(const NodeInfo& seen) {
  if (!wanted_) return;  // whoever was there, was there before
  if (seen.incarnation == wanted_->incarnation) {
    announced_ = true;  // also by a write of unknown result
    if (seen.address != wanted_->address) written_.reset();
    return;
  }
  const bool other = announced_ && seen.incarnation != 0;
  LOG_IF(WARNING, other && keeps_name_)
      << options_.node_key << " in etcd is that of another process, at " << seen.address
      << ". This one is in sync, and writes its own over it. If the other one runs, stop it";
  replaced_ = replaced_ || (other && !keeps_name_);
  written_.reset();
}

void Announcement::OnDeleted() {
  mod_revision_ = 0;
  written_.reset();
  disk_written_.reset();
}

int64_t Announcement::Pause(size_t nodes) const {
  if (failing_since_) return kPauseOfFailuresNs;
  if (!written_ || disk_written_ != disk_ || hurries_) return kPauseNs;
  const int64_t of_all_ns = static_cast<int64_t>(nodes) * kPauseOfEachNodeNs;
  if (written_ == wanted_) return std::max(kPauseOfNothingNs, of_all_ns);
  NodeInfo progress = *written_;
  progress.applied = wanted_->applied;
  return progress == wanted_ ? std::max(kPauseOfProgressNs, of_all_ns) : kPauseNs;
}

std::optional<EtcdTxn> Announcement::Due(int64_t now, size_t nodes) {
  if (busy_ || replaced_ || !wanted_) return std::nullopt;
  if (sent_at_ && now - *sent_at_ < Pause(nodes)) return std::nullopt;
  busy_ = true;
  hurries_ = false;
  sent_at_ = now;
  sent_ = wanted_;
  EtcdTxn txn = {.compares = {{.key = options_.node_key, .mod_revision = mod_revision_}},
                 .puts = {{options_.node_key, Encode(*wanted_)}}};
  if (!written_) {
    const NodeVersion version = {.incarnation = wanted_->incarnation,
                                 .version = options_.version,
                                 .moves = true,
                                 .stream = kStreamVersions.max};
    txn.puts.push_back({options_.version_key, Encode(version)});
    if (rails_) txn.puts.push_back({options_.rails_key, Encode(*rails_)});
  }
  disk_sent_ = disk_;
  if (disk_ && disk_written_ != disk_) txn.puts.push_back({options_.disk_key, Encode(*disk_)});
  return txn;
}

void Announcement::OnResult(const EtcdTxnResult& result) {
  using enum EtcdTxnResult::Outcome;
  busy_ = false;
  if (result.outcome != kWon) hurries_ = true;
  if (result.outcome == kWon || result.outcome == kRefused) {
    failing_since_.reset();
  } else {
    if (!failing_since_) failing_since_ = sent_at_;
    failure_ = std::string(result.status.message());
  }
  if (result.outcome == kWon) {
    disk_written_ = disk_sent_;
    if (result.revision < mod_revision_) {
      // The watch was faster, and told what came after this write. That is judged again, as who is
      // there came after this process.
      announced_ = true;
      return Judge(seen_);
    }
    written_ = sent_;
    Saw(*sent_, result.revision);
  } else if (result.outcome == kRefused && result.current.empty()) {
    OnDeleted();
  } else if (result.outcome == kRefused) {
    const EtcdKeyValue& there = result.current.front();
    const NodeInfo node = DecodeNodeInfo(there.value).value_or(NodeInfo{});
    // If that is another process, the watch tells whether it came later, or was restored.
    const bool other = node.incarnation != 0 && node.incarnation != sent_->incarnation;
    if (!announced_ || !other) Saw(node, there.mod_revision);
  }
}

}  // namespace gannet
