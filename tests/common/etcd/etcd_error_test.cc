#include "common/etcd/etcd_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gannet {
namespace {

using testing::HasSubstr;

// The texts are those of etcd 3.4.23.

TEST(EtcdErrorTest, AnAnswerIsNone) {
  EXPECT_TRUE(EtcdError(200, R"({"header":{"revision":"2"}})").ok());
}

TEST(EtcdErrorTest, ATransactionMayHaveBeenExecutedUnlessEtcdRefusedIt) {
  for (
      const auto& [status, text] :
      {std::pair{
           503,
           R"({"error":"etcdserver: request timed out","code":14,"message":"etcdserver: request timed out"})"},
       {503, R"({"error":"etcdserver: no leader","message":"etcdserver: no leader","code":14})"},
       {503, R"({"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}})"},
       {429, R"({"error":"x","message":"etcdserver: mvcc: database space exceeded","code":8})"},
       {500, R"({"error":"x"})"},
       {502, "<html>"},
       {504, ""},
       {408, ""},
       {302, ""},
       {0, ""}}) {
    const absl::Status error = EtcdError(status, text);
    EXPECT_TRUE(absl::IsUnavailable(error)) << error;
    EXPECT_FALSE(WasNotExecuted(error)) << error;
  }
  for (const auto& [status, text] :
       {std::pair{400, R"({"error":"x","message":"etcdserver: user name is empty","code":3})"},
        {400, R"({"error":"x","message":"illegal base64 data at input byte 0","code":3})"},
        {401, R"({"error":"x","message":"etcdserver: invalid auth token","code":16})"},
        {403, R"({"error":"x","message":"etcdserver: permission denied","code":7})"},
        {404, "Not Found"},
        {400, "Client sent an HTTP request to an HTTPS server.\n"}}) {
    const absl::Status error = EtcdError(status, text);
    EXPECT_TRUE(WasNotExecuted(error)) << error;
  }
}

TEST(EtcdErrorTest, SaysWhatToDo) {
  EXPECT_THAT(
      EtcdError(503, R"({"message":"etcdserver: no leader","error":"x","code":14})").message(),
      HasSubstr("most of its members do not run"));
  const absl::Status user =
      EtcdError(400, R"({"error":"x","message":"etcdserver: user name is empty","code":3})");
  EXPECT_TRUE(absl::IsUnauthenticated(user)) << user;
  EXPECT_THAT(user.message(), HasSubstr("--etcd_user and --etcd_password_file"));
  EXPECT_THAT(EtcdError(404, "404 page not found").message(), HasSubstr("port for clients"));
  EXPECT_THAT(EtcdError(400, "Client sent an HTTP request to an HTTPS server.\n").message(),
              HasSubstr("https://"));
}

TEST(EtcdErrorTest, TakesAnyBytes) {
  EXPECT_EQ(Printable("a\n\xff\x01z"), "a???z");
  const std::string odd = R"({"error":7,"code":"x","message":[]})";
  EXPECT_TRUE(absl::IsUnavailable(EtcdError(200, odd)));
  const std::string large =
      R"({"error":"x","code":99999999999,"message":")" + std::string(100'000, 'a') + R"("})";
  EXPECT_LT(EtcdError(500, large).message().size(), 1000u);
}

}  // namespace
}  // namespace gannet
