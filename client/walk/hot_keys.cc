// RegionWalk: finds the keys that are used most.

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/walk/hot_places.h"
#include "client/walk/region_walk.h"
#include "common/base/status_macros.h"
#include "common/protocol/message.h"

namespace gannet {
namespace {

// This many places are looked at for each wanted key. Some places have no item any more, and two
// short items may share one.
constexpr size_t kPlacesPerKey = 4;
constexpr size_t kPlacesMin = 1024;

absl::Status Interrupted() { return absl::CancelledError("the walk was interrupted"); }

}  // namespace

absl::StatusOr<std::vector<HotKey>> RegionWalk::HotKeys(size_t count,
                                                        const std::function<bool()>& goes_on) {
  if (count == 0 || count > Walker::kHotKeysMax) {
    return absl::InvalidArgumentError(absl::StrCat("from 1 to ", Walker::kHotKeysMax, " hot keys"));
  }
  progress_ = {};
  GANNET_ASSIGN_OR_RETURN(const HeatsReply heats, AskForHeats());
  HotPlaces places(heats, std::max(kPlacesMin, count * kPlacesPerKey));
  GANNET_RETURN_IF_ERROR(ReadHeats(heats, goes_on, &places));
  if (places.empty()) return std::vector<HotKey>();
  // The index says which items begin at these places now. The items prove themselves.
  std::map<std::string, HotKey, std::less<>> found;
  bool interrupted = false;
  const auto take = [&](const WalkedItem& item, uint64_t offset) {
    const std::optional<uint8_t> heat = places.HeatAt(offset);
    if (!heat) return true;
    HotKey& key = found[std::string(item.key)];
    key = {.key = std::string(item.key),
           .uses = std::max(key.uses, places.UsesOf(*heat)),
           .at_least = key.at_least || places.IsMost(*heat),
           .info = item.info,
           .block_bytes = item.block_bytes};
    return true;
  };
  const auto wanted = [&](uint64_t offset) { return places.HeatAt(offset).has_value(); };
  const auto still = [&] {
    interrupted = goes_on && !goes_on();
    return !interrupted;
  };
  GANNET_RETURN_IF_ERROR(WalkSome(wanted, take, still));
  if (interrupted) return Interrupted();
  std::vector<HotKey> keys;
  for (auto& [name, key] : found) keys.push_back(std::move(key));
  std::ranges::stable_sort(keys, std::ranges::greater{}, &HotKey::uses);
  keys.resize(std::min(keys.size(), count));
  return keys;
}

absl::StatusOr<HeatsReply> RegionWalk::AskForHeats() {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kHeats);
  GANNET_ASSIGN_OR_RETURN(const std::string answer, Ask(header));
  HeatsReply heats{};  // fields that an older server does not send stay 0
  std::memcpy(&heats, answer.data(), std::min(answer.size(), sizeof(heats)));
  if (heats.bytes == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(session_->endpoint(),
                     ": the server keeps no record of what is used: it evicts nothing, or could "
                     "not register the record. Start it with --on_full=evict"));
  }
  if (!HotPlaces::IsSane(heats, session_->grant().region_bytes)) {
    return absl::InternalError(absl::StrCat(session_->endpoint(), ": heats that cannot be"));
  }
  return heats;
}

absl::Status RegionWalk::ReadHeats(const HeatsReply& heats, const std::function<bool()>& goes_on,
                                   HotPlaces* places) {
  for (uint64_t at = 0; at < heats.bytes;) {
    if (goes_on && !goes_on()) return Interrupted();
    std::array<PlacedRead, kReadsMax> reads;
    uint32_t n = 0;
    const uint64_t first = at;
    for (; n < kReadsMax && at < heats.bytes; ++n) {
      const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(heats.bytes - at, kBufferBytes));
      reads[n] = {.place = n, .read = {.offset = at, .bytes = bytes}};
      at += bytes;
    }
    const Elsewhere where{heats.address, heats.rkey};
    GANNET_RETURN_IF_ERROR(Read({reads.data(), n}, where));
    for (uint32_t i = 0; i < n; ++i) {
      places->Take(first + uint64_t{i} * kBufferBytes, {buffer(i), reads[i].read.bytes});
    }
  }
  places->Finish();
  return absl::OkStatus();
}

}  // namespace gannet
