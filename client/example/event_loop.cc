// Gannet in an application's own event loop: one thread that reads lines from its standard input,
// looks each up in the store, and sleeps in epoll in between. The loop waits for two descriptors,
// that of the input and that of the client.
//
//   softverbs-run ./event_loop 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)
//
// A line "KEY" gets, a line "KEY VALUE" puts. It ends with the input, when all is answered.

#include <gannet/async_client.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace {

// Keys are copied by the client. Buffers and values have to stay until the completion.
struct Request {
  std::string key;
  std::string value;
  std::array<std::byte, 1024> found;
};

class Lookups {
 public:
  explicit Lookups(gannet::AsyncClient& client) : client_(client) {}

  void Begin(std::string_view line) {
    const size_t space = line.find(' ');
    Request& request = requests_[++last_];
    request.key = line.substr(0, space);
    absl::Status status;
    if (space == line.npos) {
      status = client_.Get(request.key, request.found, last_);
    } else {
      request.value = line.substr(space + 1);
      status = client_.Put(request.key, request.value, {}, last_);
    }
    if (status.ok()) return;
    std::cout << request.key << ": " << status.message() << "\n";
    requests_.erase(last_);
  }

  void Poll() {
    std::array<gannet::Completion, 16> done;
    const size_t n = client_.Poll(done);
    for (size_t i = 0; i < n; ++i) Show(done[i]);
  }

  bool Done() const { return requests_.empty(); }

 private:
  void Show(const gannet::Completion& done) {
    const auto node = requests_.extract(done.user_data);
    const Request& request = node.mapped();
    std::cout << request.key;
    if (done.code != absl::StatusCode::kOk) {
      std::cout << ": " << absl::StatusCodeToString(done.code) << "\n";
    } else if (done.type == gannet::OpType::kPut) {
      std::cout << " is stored\n";
    } else if (!done.found) {
      std::cout << " is absent\n";
    } else {
      const size_t size = std::min<size_t>(done.info.value_bytes, request.found.size());
      std::cout << " = ";
      std::cout.write(reinterpret_cast<const char*>(request.found.data()),
                      static_cast<std::streamsize>(size));
      std::cout << "\n";
    }
  }

  gannet::AsyncClient& client_;
  std::map<uint64_t, Request> requests_;
  uint64_t last_ = 0;
};

// Appends what the input has now; false at its end.
bool Read(std::string* text) {
  std::array<char, 4096> bytes;
  const ssize_t n = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (n > 0) text->append(bytes.data(), static_cast<size_t>(n));
  return n > 0;
}

void Watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

void Loop(gannet::AsyncClient& client) {
  Lookups lookups(client);
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  Watch(epoll, STDIN_FILENO);
  Watch(epoll, client.fd());
  std::string text;
  for (bool open = true; open || !lookups.Done();) {
    // Before sleeping: while there is something to do, it is done instead.
    while (client.Arm()) lookups.Poll();
    if (!open && lookups.Done()) break;
    std::array<epoll_event, 2> events;
    const int n = epoll_wait(epoll, events.data(), events.size(), -1);
    for (int i = 0; i < n; ++i) {
      if (events[i].data.fd == client.fd()) {
        lookups.Poll();
        continue;
      }
      open = Read(&text);
      if (!open) epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
      for (size_t end; (end = text.find('\n')) != text.npos; text.erase(0, end + 1)) {
        if (end > 0) lookups.Begin(std::string_view(text).substr(0, end));
      }
    }
  }
  close(epoll);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: event_loop HOST:PORT\n";
    return 2;
  }
  const auto client = gannet::AsyncClient::Connect({argv[1]});
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return 1;
  }
  Loop(**client);
  return 0;
}
