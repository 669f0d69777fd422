#ifndef GANNET_COMMON_PROTOCOL_MEMBER_STANDING_H_
#define GANNET_COMMON_PROTOCOL_MEMBER_STANDING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gannet {

// What a process is in its group.
enum class MemberRole : uint8_t {
  kJoining,  // does not have all items yet
  kBackup,   // has all that is committed, and may take over
  kPrimary,
  kEnded,  // has lost its place, and starts again
};

// Returns "joining", "backup", "primary" or "ended".
std::string_view NameOf(MemberRole role);

// What a member of a group says of itself to whoever asks with kConnectStanding: the reason of a
// reject with RejectCode::kStanding. It is text, as all reasons are.
//
//   role=joining epoch=3 process=00000000000000b1 applied=8192 up_s=12 joined=43 lease=0
struct MemberStanding {
  MemberRole role = MemberRole::kJoining;
  uint64_t epoch = 0;          // of the configuration that it knows
  uint64_t incarnation = 0;    // of the process
  uint64_t applied = 0;        // LSN; of a primary what all in sync have
  uint32_t uptime_s = 0;       // of the process
  uint8_t joined_percent = 0;  // how much of the primary's memory a joining one has walked through
  uint16_t lease_left_ms = 0;  // of a primary. 0: clients believe nothing that it says

  bool operator==(const MemberStanding&) const = default;
};

// REQUIRES: joined_percent <= 100.
std::string ReasonOf(const MemberStanding& it);
// Returns what a reason says; nullopt: it is none of these. It may be any bytes. Accepts only what
// ReasonOf returns, and more words behind it, which later versions may append.
std::optional<MemberStanding> ParseMemberStanding(std::string_view reason);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_MEMBER_STANDING_H_
