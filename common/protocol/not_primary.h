#ifndef GANNET_COMMON_PROTOCOL_NOT_PRIMARY_H_
#define GANNET_COMMON_PROTOCOL_NOT_PRIMARY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gannet {

// What a member of a group that is not its primary says to clients: the reason of a reject with
// RejectCode::kNotPrimary. The reason is text because a reject has no other byte left.
//
//   primary=HOST:PORT epoch=N
struct NotPrimary {
  // With both names and the longest number it fits into a reject.
  static constexpr size_t kAddressBytesMax = 100;

  std::string primary;  // its address, as it advertises it
  uint64_t epoch = 0;   // of the configuration that names it

  bool operator==(const NotPrimary&) const = default;
};

// Returns whether `text` can be an address in such a reason: 1 to kAddressBytesMax letters, digits
// and any of "._:-[]". Whether it can be resolved is another question.
bool IsPrimaryAddress(std::string_view text);

// REQUIRES: IsPrimaryAddress(it.primary).
std::string ReasonOf(const NotPrimary& it);
// Returns what a reason says. nullopt: it does not name a primary; it may be any bytes. Accepts
// only what ReasonOf returns.
std::optional<NotPrimary> ParseNotPrimary(std::string_view reason);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_NOT_PRIMARY_H_
