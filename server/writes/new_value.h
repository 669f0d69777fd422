#ifndef GANNET_SERVER_WRITES_NEW_VALUE_H_
#define GANNET_SERVER_WRITES_NEW_VALUE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "common/protocol/limits.h"
#include "common/protocol/message.h"
#include "server/writes/counter.h"

namespace gannet {

// How appends and increments make a new value from the old one. `old` is nullopt if there is no
// item.

// A new value: one piece, and another one behind it.
struct Pieces {
  std::string_view first;
  std::string_view second;

  size_t size() const { return first.size() + second.size(); }
  std::string_view CopyTo(char* out) const {
    first.copy(out, first.size());
    second.copy(out + first.size(), second.size());
    return {out, size()};
  }
};

// kTooLong: the new value would be longer than kAppendedBytesMax.
inline ReplyStatus MakeAppended(std::optional<std::string_view> old, std::string_view piece,
                                bool at_front, Pieces* pieces) {
  *pieces = {old.value_or(std::string_view()), piece};
  if (at_front) std::swap(pieces->first, pieces->second);
  return pieces->size() <= kAppendedBytesMax ? ReplyStatus::kOk : ReplyStatus::kTooLong;
}

// Writes the new number to `number`, and its text to `text`, which `pieces` then names.
inline ReplyStatus MakeIncremented(std::optional<std::string_view> old,
                                   const CounterOperands& operands,
                                   std::array<char, kCounterBytesMax>* text, int64_t* number,
                                   Pieces* pieces) {
  const std::optional<int64_t> from = old ? ParseCounter(*old) : operands.initial;
  if (!from) return ReplyStatus::kNotANumber;
  if (__builtin_add_overflow(*from, operands.delta, number)) return ReplyStatus::kOutOfRange;
  *pieces = {FormatCounter(*number, text->data()), {}};
  return ReplyStatus::kOk;
}

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_NEW_VALUE_H_
