#include "proxy/protocol/memcached_binary.h"

#include <utility>

#include "common/layout/item.h"

namespace gannet::proxy {
namespace {

// A longer request ends the connection instead of being skipped.
constexpr uint64_t kSkippedBodyMax = (uint64_t{1} << 31) - 1;

std::string ErrorFrame(std::string_view header, BinaryStatus status, std::string_view text) {
  std::string frame;
  AppendBinaryAnswer(&frame, header, {.status = status, .value = text});
  return frame;
}

}  // namespace

void AppendBinaryAnswer(std::string* out, std::string_view request, const BinaryAnswer& answer) {
  *out += static_cast<char>(kBinaryReply);
  *out += request[1];  // opcode
  AppendBigEndian<2>(out, answer.key.size());
  AppendBigEndian<1>(out, answer.extras.size());
  AppendBigEndian<1>(out, 0);
  AppendBigEndian<2>(out, static_cast<uint16_t>(answer.status));
  AppendBigEndian<4>(out, answer.extras.size() + answer.key.size() + answer.value.size());
  out->append(request.substr(12, 4));  // opaque
  AppendBigEndian<8>(out, answer.cas);
  out->append(answer.extras).append(answer.key).append(answer.value);
}

Parsed ParseMemcachedBinary(std::string_view input, ParsedCommand* command) {
  if (!input.empty() && static_cast<uint8_t>(input[0]) != kBinaryRequest) return Broken("");
  if (input.size() < kBinaryHeaderBytes) return NeedsMore(kBinaryHeaderBytes);
  const std::string_view header = input.substr(0, kBinaryHeaderBytes);
  const uint64_t key_bytes = BigEndian<2>(header.substr(2));
  const uint64_t extras_bytes = BigEndian<1>(header.substr(4));
  const uint64_t body_bytes = BigEndian<4>(header.substr(8));
  if (body_bytes < key_bytes + extras_bytes) {
    return Broken(ErrorFrame(header, BinaryStatus::kInvalid, "Invalid arguments"));
  }
  const uint64_t value_bytes = body_bytes - key_bytes - extras_bytes;
  const size_t end = kBinaryHeaderBytes + body_bytes;
  if (body_bytes > kSkippedBodyMax) {
    return Broken(ErrorFrame(header, BinaryStatus::kTooLarge, "Too large."));
  }
  if (value_bytes > kValueBytesMax) {
    return Refused(end, ErrorFrame(header, BinaryStatus::kTooLarge, "Too large."));
  }
  if (input.size() < end) return NeedsMore(end);
  command->words.clear();
  command->rewritten.clear();
  command->words.push_back(header);
  command->words.push_back(input.substr(kBinaryHeaderBytes, extras_bytes));
  command->words.push_back(input.substr(kBinaryHeaderBytes + extras_bytes, key_bytes));
  command->data = input.substr(end - value_bytes, value_bytes);
  command->has_data = true;
  return Complete(end);
}

}  // namespace gannet::proxy
