#ifndef GANNET_TESTS_COMMON_PROTOCOL_ENCODED_H_
#define GANNET_TESTS_COMMON_PROTOCOL_ENCODED_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "common/protocol/message.h"
#include "tests/common/protocol/encode_reply.h"
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {

// Requests and replies as messages, and what their decoders say.

inline RequestHeader APut(std::string_view key, std::string_view value) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kPut);
  header.key_bytes = static_cast<uint16_t>(key.size());
  header.value_bytes = static_cast<uint32_t>(value.size());
  header.sequence = 1;
  return header;
}

inline RequestHeader ARequest(Opcode opcode) {
  RequestHeader header = APut("key", "");
  header.opcode = static_cast<uint8_t>(opcode);
  return header;
}

inline std::vector<std::byte> Encode(const RequestHeader& header, std::string_view key,
                                     std::string_view value) {
  std::vector<std::byte> message(sizeof(header) + key.size() + value.size());
  EXPECT_EQ(EncodeRequest(header, key, value, message), message.size());
  return message;
}

inline std::vector<std::byte> Encode(const ReplyHeader& header, std::string_view value) {
  std::vector<std::byte> message(sizeof(header) + value.size());
  EXPECT_EQ(EncodeReply(header, value, message), message.size());
  return message;
}

// Returns the status with which the message is answered, or nullopt if it is right.
inline std::optional<ReplyStatus> Refusal(const std::vector<std::byte>& message) {
  RequestView view;
  const auto error = DecodeRequest(message, &view);
  if (!error) return std::nullopt;
  EXPECT_STRNE(error->reason, "");
  EXPECT_EQ(HexOf(view.header), Hex(std::span(message).first(sizeof(view.header))));
  return error->status;
}

inline bool IsReply(const std::vector<std::byte>& message) {
  ReplyView view;
  return DecodeReply(message, &view);
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_PROTOCOL_ENCODED_H_
