#include "common/etcd/http_carrier.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"

namespace gannet {
namespace {

constexpr size_t kHeaderBytesMax = 64 << 10;
// How long the thread sleeps if nothing is to be done.
constexpr int64_t kIdleMs = 60'000;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// Connections that are kept open: the cluster's members are few.
constexpr long kConnectionsMax = 8;

}  // namespace

struct HttpCarrier::Transfer {
  explicit Transfer(HttpRequest what) : request(std::move(what)) {}
  ~Transfer() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  HttpRequest request;
  HttpCarrier* carrier = nullptr;
  int64_t due_ns = 0;  // when it begins; once begun: when it is overdue
  bool begun = false;
  bool had_line = false;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::string received;  // the body, or a line's beginning
  size_t header_bytes = 0;
  std::string refused;  // why we ended it ourselves
  char message[CURL_ERROR_SIZE] = {};
};

// What libcurl calls, in the thread. To return another number than they were given ends the
// transfer.
struct HttpCarrier::Callbacks {
  static size_t OnHeader(char*, size_t size, size_t count, void* user) {
    auto* transfer = static_cast<Transfer*>(user);
    transfer->header_bytes += size * count;
    if (transfer->header_bytes <= kHeaderBytesMax) return size * count;
    transfer->refused = absl::StrCat("its headers are longer than ", kHeaderBytesMax, " bytes");
    return 0;
  }

  static size_t OnBody(char* data, size_t size, size_t count, void* user) {
    auto* transfer = static_cast<Transfer*>(user);
    std::string_view piece(data, size * count);
    if (transfer->request.stream && !TellLines(transfer, &piece)) return 0;
    const size_t max = transfer->carrier->options_.answer_bytes_max;
    if (piece.size() > max - transfer->received.size()) {
      transfer->refused = absl::StrCat("its answer is longer than ", max, " bytes");
      return 0;
    }
    transfer->received += piece;
    return size * count;
  }

  // Tells the caller of each line that ends in the piece, and leaves what is behind them.
  static bool TellLines(Transfer* transfer, std::string_view* piece) {
    const size_t max = transfer->carrier->options_.answer_bytes_max;
    for (size_t end; (end = piece->find('\n')) != std::string_view::npos;) {
      if (end > max - transfer->received.size()) break;  // too long: the caller refuses it
      transfer->received += piece->substr(0, end);
      piece->remove_prefix(end + 1);
      HttpEvent event = {.id = transfer->request.id,
                         .kind = HttpEvent::Kind::kLine,
                         .text = std::exchange(transfer->received, {}),
                         .sent = true};
      long status = 0;
      curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
      event.status = static_cast<int>(status);
      if (!transfer->carrier->Tell(std::move(event))) {
        transfer->refused = "its answers are not taken as fast as they come";
        return false;
      }
      transfer->had_line = true;
      transfer->due_ns = MonotonicNs() + transfer->request.silence_ms * kNsPerMs;
    }
    return true;
  }
};

HttpCarrier::HttpCarrier(Options options) : options_(std::move(options)) {}

absl::StatusOr<std::unique_ptr<HttpCarrier>> HttpCarrier::Create(Options options) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  for (const std::string& file : {options.ca_file, options.cert_file, options.key_file}) {
    if (file.empty() || access(file.c_str(), R_OK) == 0) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("cannot read the certificate or key in ", file));
  }
  std::unique_ptr<HttpCarrier> carrier(new HttpCarrier(std::move(options)));
  auto came = WakeUp::Create();
  carrier->multi_ = curl_multi_init();
  if (!came.ok() || carrier->multi_ == nullptr) {
    return absl::InternalError(
        "cannot make what carries requests to etcd: no descriptors are left");
  }
  carrier->came_ = *std::move(came);
  curl_multi_setopt(carrier->multi_, CURLMOPT_MAXCONNECTS, kConnectionsMax);
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  carrier->thread_ = std::thread([it = carrier.get()] { it->Run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return carrier;
}

HttpCarrier::~HttpCarrier() {
  if (thread_.joinable()) {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    curl_multi_wakeup(multi_);
    thread_.join();
  }
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
}

void HttpCarrier::Send(HttpRequest request) {
  {
    const MutexLock lock(mutex_);
    requests_.push_back(std::move(request));
  }
  curl_multi_wakeup(multi_);
}

void HttpCarrier::Cancel(uint64_t id) {
  {
    const MutexLock lock(mutex_);
    cancels_.push_back(id);
  }
  curl_multi_wakeup(multi_);
}

std::vector<HttpEvent> HttpCarrier::Take() {
  // Before the events are taken, so that one that comes in between makes it readable again.
  came_->Take();
  const MutexLock lock(mutex_);
  waiting_bytes_ = 0;
  return std::exchange(events_, {});
}

bool HttpCarrier::Tell(HttpEvent event) {
  {
    const MutexLock lock(mutex_);
    const size_t bytes = sizeof(event) + event.text.size();
    // An end is always told: there are no more of them than requests.
    if (event.kind == HttpEvent::Kind::kLine &&
        bytes > options_.waiting_bytes_max - std::min(options_.waiting_bytes_max, waiting_bytes_)) {
      return false;
    }
    waiting_bytes_ += bytes;
    events_.push_back(std::move(event));
  }
  came_->Ask();
  return true;
}

void HttpCarrier::Run() {
  pthread_setname_np(pthread_self(), "kv-cluster");
  while (TakeOrders()) {
    BeginDue(MonotonicNs());
    int running = 0;
    curl_multi_perform(multi_, &running);
    EndFinished();
    EndOverdue(MonotonicNs());
    const int64_t next = NextNs();
    const int64_t wait_ms =
        next == kNever ? kIdleMs
                       : std::clamp<int64_t>((next - MonotonicNs()) / kNsPerMs + 1, 0, kIdleMs);
    curl_multi_poll(multi_, nullptr, 0, static_cast<int>(wait_ms), nullptr);
  }
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->begun) curl_multi_remove_handle(multi_, transfer->easy);
  }
  transfers_.clear();
}

bool HttpCarrier::TakeOrders() {
  std::vector<HttpRequest> requests;
  std::vector<uint64_t> cancels;
  {
    const MutexLock lock(mutex_);
    if (stop_) return false;
    requests.swap(requests_);
    cancels.swap(cancels_);
  }
  const int64_t now = MonotonicNs();
  for (HttpRequest& request : requests) {
    const uint64_t id = request.id;
    auto transfer = std::make_unique<Transfer>(std::move(request));
    transfer->carrier = this;
    transfer->due_ns = now + transfer->request.delay_ms * kNsPerMs;
    const bool is_new = transfers_.emplace(id, std::move(transfer)).second;
    GANNET_CHECK(is_new, "two requests with one id");
  }
  for (const uint64_t id : cancels) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) continue;
    if (found->second->begun) curl_multi_remove_handle(multi_, found->second->easy);
    transfers_.erase(found);
  }
  return true;
}

void HttpCarrier::BeginDue(int64_t now) {
  for (const auto& [id, transfer] : transfers_) {
    if (!transfer->begun && transfer->due_ns <= now) Begin(transfer.get(), now);
  }
}

void HttpCarrier::Begin(Transfer* transfer, int64_t now) {
  const HttpRequest& request = transfer->request;
  CURL* easy = curl_easy_init();
  GANNET_CHECK(easy != nullptr, "no memory for a request to etcd");
  transfer->easy = easy;
  // etcd ends a watch that can miss changes, because there is no leader, only if this asks for it.
  for (const char* header :
       {"Content-Type: application/json", "Grpc-Metadata-hasleader: true", "Expect:"}) {
    transfer->headers = curl_slist_append(transfer->headers, header);
  }
  if (!request.authorization.empty()) {
    transfer->headers = curl_slist_append(
        transfer->headers, absl::StrCat("Authorization: ", request.authorization).c_str());
  }
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROXY, "");  // not the one in the environment
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.data());
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->message);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, Callbacks::OnBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, Callbacks::OnHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  if (!options_.cert_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_SSLCERT, options_.cert_file.c_str());
    curl_easy_setopt(easy, CURLOPT_SSLKEY, options_.key_file.c_str());
  }
  // libcurl sends a request again when a connection that it used before ends without an answer.
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request.once ? 1L : 0L);
  transfer->begun = true;
  transfer->due_ns = now + request.answer_ms * kNsPerMs;
  curl_multi_add_handle(multi_, easy);
}

void HttpCarrier::EndFinished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    char* user = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
    const auto* transfer = reinterpret_cast<const Transfer*>(user);
    std::string error = transfer->refused;
    if (code != CURLE_OK && error.empty()) {
      error = transfer->message[0] != '\0' ? transfer->message : curl_easy_strerror(code);
    }
    End(transfer->request.id, std::move(error));
  }
}

void HttpCarrier::EndOverdue(int64_t now) {
  std::vector<uint64_t> overdue;
  for (const auto& [id, transfer] : transfers_) {
    if (transfer->begun && transfer->due_ns <= now) overdue.push_back(id);
  }
  for (const uint64_t id : overdue) {
    const Transfer& transfer = *transfers_.at(id);
    const HttpRequest& request = transfer.request;
    End(id, transfer.had_line ? absl::StrCat("nothing came for ", request.silence_ms, " ms")
                              : absl::StrCat("no answer within ", request.answer_ms, " ms"));
  }
}

void HttpCarrier::End(uint64_t id, std::string error) {
  const auto found = transfers_.find(id);
  GANNET_CHECK(found != transfers_.end(), "the end of a request that is not under way");
  Transfer& transfer = *found->second;
  long status = 0, sent_bytes = 0;
  curl_easy_getinfo(transfer.easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(transfer.easy, CURLINFO_REQUEST_SIZE, &sent_bytes);
  curl_multi_remove_handle(multi_, transfer.easy);
  Tell({.id = id,
        .kind = HttpEvent::Kind::kEnd,
        .text = std::move(transfer.received),
        .status = static_cast<int>(status),
        .sent = sent_bytes > 0,
        .silent = transfer.had_line && transfer.due_ns <= MonotonicNs(),
        .error = std::move(error)});
  transfers_.erase(found);
}

int64_t HttpCarrier::NextNs() const {
  int64_t next = kNever;
  for (const auto& [id, transfer] : transfers_) next = std::min(next, transfer->due_ns);
  return next;
}

}  // namespace gannet
