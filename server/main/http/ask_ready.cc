#include "server/main/http/ask_ready.h"

#include <curl/curl.h>

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

constexpr long kAnswerMs = 3000;
constexpr size_t kTextBytesMax = 4096;
constexpr long kOk = 200;

size_t TakeText(char* bytes, size_t size, size_t count, void* user) {
  auto* const text = static_cast<std::string*>(user);
  if (text->size() + size * count > kTextBytesMax) return 0;  // it is no /readyz
  text->append(bytes, size * count);
  return size * count;
}

}  // namespace

absl::Status AskReady(const std::string& address) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  if (curl == nullptr) return absl::UnavailableError("libcurl does not start");
  const std::string url = absl::StrCat("http://", address, "/readyz");
  std::string text;
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, kAnswerMs);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, TakeText);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &text);
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK) {
    return absl::UnavailableError(absl::StrCat(url, ": ", curl_easy_strerror(code)));
  }
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status == kOk) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(url, ": ", status, " ", absl::StripAsciiWhitespace(text)));
}

}  // namespace gannet
