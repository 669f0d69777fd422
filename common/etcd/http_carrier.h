#ifndef GANNET_COMMON_ETCD_HTTP_CARRIER_H_
#define GANNET_COMMON_ETCD_HTTP_CARRIER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "common/base/wake_up.h"

namespace gannet {

// A POST of JSON.
struct HttpRequest {
  uint64_t id = 0;  // chosen by the caller; no two requests have the same
  std::string url;
  std::string body;
  std::string authorization;  // a header's value; empty: none
  // It arrives once at most. Other requests are sent again if a connection that was kept open turns
  // out to be closed.
  bool once = false;
  // The answer is lines, which come one by one for as long as it lasts.
  bool stream = false;
  int64_t delay_ms = 0;    // begins so much later
  int64_t answer_ms = 0;   // for the whole answer, or the first line of a stream
  int64_t silence_ms = 0;  // for each further line of a stream
};

// What comes of a request: lines if it is a stream, and an end.
struct HttpEvent {
  enum class Kind : uint8_t { kLine, kEnd };
  uint64_t id = 0;
  Kind kind = Kind::kEnd;
  std::string text;     // the line; at the end the body, or what came behind the last line
  int status = 0;       // HTTP's; 0: no answer came
  bool sent = false;    // a part of the request may have arrived
  bool silent = false;  // a stream's end: no line came in silence_ms
  std::string error;    // why the answer is not whole; empty: it is
};

// Carries requests and answers in a thread of its own, kv-cluster, and decides nothing. What comes
// back waits until the caller takes it. Answers that are too long, or that nobody takes, end with
// an error, so memory is bounded.
//
// Thread safety: one caller. Destruction ends all requests.
class HttpCarrier {
 public:
  struct Options {
    std::string ca_file;    // certificates (PEM) that sign the servers'; empty: the system's
    std::string cert_file;  // this client's certificate (PEM), and its key; empty: it has none
    std::string key_file;
    size_t answer_bytes_max = 4 << 20;    // of an answer, or a line
    size_t waiting_bytes_max = 16 << 20;  // of lines that nobody has taken
  };
  // Internal: the system has no more descriptors or threads. FailedPrecondition: no such
  // file.
  static absl::StatusOr<std::unique_ptr<HttpCarrier>> Create(Options options);
  ~HttpCarrier();
  HttpCarrier(const HttpCarrier&) = delete;
  HttpCarrier& operator=(const HttpCarrier&) = delete;

  void Send(HttpRequest request);
  // Ends a request without an event. Events of it that nobody took stay. No request: does nothing.
  void Cancel(uint64_t id);
  // Readable while there are events.
  int fd() const { return came_->fd(); }
  // Returns what came since the last call.
  std::vector<HttpEvent> Take();

 private:
  struct Transfer;
  struct Callbacks;

  explicit HttpCarrier(Options options);
  void Run();
  // Returns false if the thread has to end.
  bool TakeOrders();
  void BeginDue(int64_t now);
  void Begin(Transfer* transfer, int64_t now);
  void EndFinished();
  void EndOverdue(int64_t now);
  // Tells the caller the end, and forgets the transfer.
  void End(uint64_t id, std::string error);
  int64_t NextNs() const;
  // Returns false if too many bytes wait.
  bool Tell(HttpEvent event);

  const Options options_;
  std::unique_ptr<WakeUp> came_;  // an event did
  void* multi_ = nullptr;         // CURLM; of the thread, but for curl_multi_wakeup

  // The thread's.
  absl::flat_hash_map<uint64_t, std::unique_ptr<Transfer>> transfers_;

  Mutex mutex_;
  std::vector<HttpRequest> requests_ GANNET_GUARDED_BY(mutex_);
  std::vector<uint64_t> cancels_ GANNET_GUARDED_BY(mutex_);
  bool stop_ GANNET_GUARDED_BY(mutex_) = false;
  std::vector<HttpEvent> events_ GANNET_GUARDED_BY(mutex_);
  size_t waiting_bytes_ GANNET_GUARDED_BY(mutex_) = 0;

  std::thread thread_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_ETCD_HTTP_CARRIER_H_
