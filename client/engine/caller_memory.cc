#include "client/engine/caller_memory.h"

#include <algorithm>
#include <cstring>

#include "client/session/memory_domains.h"
#include "common/base/data_path_checks.h"

namespace gannet {

uint64_t BytesOf(std::span<const RegisteredSpan> spans) {
  uint64_t bytes = 0;
  for (const RegisteredSpan& span : spans) bytes += span.bytes;
  return bytes;
}

size_t PiecesOf(std::span<const RegisteredSpan> spans, uint64_t from, uint64_t end,
                std::span<LocalPiece> pieces) {
  GANNET_CHECK_DATA_PATH(from < end && end <= BytesOf(spans), "the spans have no such bytes");
  size_t n = 0;
  uint64_t begin = 0;  // of the span, among the bytes of all
  for (const RegisteredSpan& span : spans) {
    const uint64_t first = std::max(begin, from);
    const uint64_t last = std::min(begin + span.bytes, end);
    if (first < last) {
      if (n == pieces.size()) break;
      const MemoryRange& range = *span.memory->range();
      pieces[n++] = {range.address() + span.offset + (first - begin),
                     static_cast<uint32_t>(last - first), &range.keys()};
    }
    begin += span.bytes;
  }
  return n;
}

std::span<const ValueSegment> SegmentsOf(std::span<const RegisteredSpan> spans, uint32_t domain,
                                         std::span<ValueSegment> out) {
  GANNET_CHECK_DATA_PATH(out.size() >= spans.size(), "no room for the segments");
  for (size_t i = 0; i < spans.size(); ++i) {
    const MemoryRange& range = *spans[i].memory->range();
    out[i] = {range.address() + spans[i].offset, range.rkey(domain),
              static_cast<uint32_t>(spans[i].bytes)};
  }
  return out.first(spans.size());
}

bool HasCpuAddresses(std::span<const RegisteredSpan> spans) {
  return std::ranges::all_of(
      spans, [](const RegisteredSpan& span) { return span.memory->range()->data() != nullptr; });
}

bool CopyTo(std::span<const RegisteredSpan> spans, std::string_view value) {
  for (const RegisteredSpan& span : spans) {
    const size_t n = std::min<size_t>(span.bytes, value.size());
    if (n == 0) continue;
    std::byte* const data = span.memory->range()->data();
    if (data == nullptr) return false;
    std::memcpy(data + span.offset, value.data(), n);
    value.remove_prefix(n);
  }
  return true;
}

}  // namespace gannet
