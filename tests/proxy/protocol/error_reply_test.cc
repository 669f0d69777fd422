#include "proxy/protocol/error_reply.h"

#include <gtest/gtest.h>

#include <string>

namespace gannet::proxy {
namespace {

TEST(ErrorReplyTest, RedisErrorsBeginWithAMinus) {
  EXPECT_TRUE(IsErrorReply(Protocol::kRedis, "-ERR no\r\n"));
  for (const char* answer : {"", "+OK\r\n", "$-1\r\n", "*-1\r\n", ":-1\r\n"}) {
    EXPECT_FALSE(IsErrorReply(Protocol::kRedis, answer)) << answer;
  }
}

TEST(ErrorReplyTest, MemcachedErrorsAreWords) {
  for (const char* error : {"ERROR\r\n", "CLIENT_ERROR bad\r\n", "SERVER_ERROR out\r\n"}) {
    EXPECT_TRUE(IsErrorReply(Protocol::kMemcached, error)) << error;
  }
  for (const char* answer : {"", "END\r\n", "EX\r\n", "STORED\r\n", "NOT_FOUND\r\n", "-1\r\n"}) {
    EXPECT_FALSE(IsErrorReply(Protocol::kMemcached, answer)) << answer;
  }
}

TEST(ErrorReplyTest, BinaryErrorsAreStatuses) {
  const auto is_error = [](char high, char low) {
    std::string header(24, '\0');
    header[6] = high;
    header[7] = low;
    return IsErrorReply(Protocol::kMemcachedBinary, header);
  };
  EXPECT_FALSE(is_error(0, 0));
  EXPECT_FALSE(is_error(0, 1)) << "not found";
  EXPECT_FALSE(is_error(0, 2)) << "exists";
  EXPECT_FALSE(is_error(0, 5)) << "not stored";
  EXPECT_TRUE(is_error(0, 4)) << "invalid arguments";
  EXPECT_TRUE(is_error(0, '\x82')) << "out of memory";
  EXPECT_TRUE(is_error(1, 0));
  EXPECT_FALSE(IsErrorReply(Protocol::kMemcachedBinary, ""));
}

}  // namespace
}  // namespace gannet::proxy
