#include "common/etcd/etcd_error.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/printable.h"

namespace gannet {
namespace {

using Json = nlohmann::json;

constexpr size_t kMessageBytesMax = 200;
constexpr int kHttpOk = 200;
constexpr int kHttpTimeout = 408;

// gRPC's codes, which are abseil's.
struct Said {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string message;
};

int NumberIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<int>() : 0;
}

std::string TextIn(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Returns what etcd said: {"error": "...", "code": 14}, or as a line of a watch
// {"error": {"grpc_code": 14, "message": "..."}}.
std::optional<Said> WhatEtcdSaid(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;  // neither is what is no JSON
  const auto error = json.find("error");
  if (error == json.end()) return std::nullopt;
  const bool of_watch = error->is_object();
  const Json& object = of_watch ? *error : json;
  return Said{static_cast<absl::StatusCode>(NumberIn(object, of_watch ? "grpc_code" : "code")),
              Printable(TextIn(object, "message"))};
}

absl::Status StatusOf(const Said& said) {
  using enum absl::StatusCode;
  if (said.code == kUnauthenticated || absl::StrContains(said.message, "user name is empty") ||
      absl::StrContains(said.message, "invalid auth token") ||
      absl::StrContains(said.message, "revision of auth store is old")) {
    return absl::UnauthenticatedError(
        absl::StrCat("etcd wants a user and a password: ", said.message,
                     ". Give them by --etcd_user and --etcd_password_file"));
  }
  if (said.code == kPermissionDenied) return absl::PermissionDeniedError(said.message);
  if (absl::StrContains(said.message, "no leader")) {
    return absl::UnavailableError(
        "etcd has no leader: most of its members do not run, or do not reach each other");
  }
  if (said.code == kInvalidArgument || said.code == kOutOfRange || said.code == kUnimplemented) {
    return absl::InvalidArgumentError(absl::StrCat("etcd refuses: ", said.message));
  }
  return absl::UnavailableError(absl::StrCat("etcd says: ", said.message));
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string printable(text.substr(0, kMessageBytesMax));
  for (char& c : printable) c = PrintableOf(c);
  return printable;
}

absl::Status EtcdError(int http_status, std::string_view text) {
  if (const std::optional<Said> said = WhatEtcdSaid(text)) return StatusOf(*said);
  if (http_status == kHttpOk) return absl::OkStatus();
  if (text.find("HTTP request to an HTTPS server") != std::string_view::npos) {
    return absl::FailedPreconditionError("it wants TLS: write https:// in the URL");
  }
  // A proxy in front of etcd may have passed the request on before it says this.
  if (http_status < 400 || http_status == kHttpTimeout || http_status >= 500) {
    return absl::UnavailableError(absl::StrCat("it answers with HTTP status ", http_status));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("it answers with HTTP status ", http_status,
                   ", so it is no etcd 3.4 or later, or not its port for clients. That is 2379 as "
                   "a rule; 2380 is for its other members"));
}

bool WasNotExecuted(const absl::Status& error) {
  return absl::IsUnauthenticated(error) || absl::IsPermissionDenied(error) ||
         absl::IsFailedPrecondition(error) || absl::IsInvalidArgument(error);
}

}  // namespace gannet
