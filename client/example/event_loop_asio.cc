// Gannet in an event loop of asio (or Boost.Asio: write boost::asio for asio). It does what
// event_loop.cc does with epoll: looks up the keys that it reads from its standard input.
//
//   g++ -std=c++20 event_loop_asio.cc $(pkg-config --cflags --libs gannet) -o event_loop_asio
//   softverbs-run ./event_loop_asio 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)
//
// A line "KEY" gets, a line "KEY VALUE" puts. It ends with the input, when all is answered.

#include <gannet/async_client.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <istream>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace {

// An AsyncClient whose operations call back in the thread of the event loop.
class LoopClient {
 public:
  using Answer = std::function<void(const gannet::Completion&, std::string_view value)>;

  LoopClient(asio::io_context& loop, std::unique_ptr<gannet::AsyncClient> client)
      : client_(std::move(client)), readable_(loop, dup(client_->fd())) {
    PumpSoon();
  }
  // Lets the loop end when all is answered.
  void End() {
    ends_ = true;
    PumpSoon();
  }

  void Get(const std::string& key, Answer answer) {
    Request& request = requests_[++last_];
    request.answer = std::move(answer);
    Began(client_->Get(key, request.buffer, last_));
  }
  void Put(const std::string& key, std::string value, Answer answer) {
    Request& request = requests_[++last_];
    request.answer = std::move(answer);
    request.value = std::move(value);
    Began(client_->Put(key, request.value, {}, last_));
  }

 private:
  // Buffers and values have to stay where they are until the completion.
  struct Request {
    Answer answer;
    std::string value;
    std::array<std::byte, 1024> buffer;
  };

  void Began(const absl::Status& status) {
    if (!status.ok()) Finish({.user_data = last_, .code = status.code()});
    PumpSoon();
  }

  // What was begun in one turn of the loop goes out with one post.
  void PumpSoon() {
    if (!std::exchange(pump_is_due_, true)) {
      asio::post(readable_.get_executor(), [this] { Pump(); });
    }
  }

  // Does what there is to do, then lets the loop wait for the descriptor. It always waits, also
  // with nothing under way, so that the servers hear of the client.
  void Pump() {
    pump_is_due_ = false;
    Poll();
    while (client_->Arm()) Poll();
    if (ends_ && requests_.empty()) {
      readable_.cancel();
    } else if (!std::exchange(waits_, true)) {
      readable_.async_wait(readable_.wait_read, [this](const asio::error_code& error) {
        waits_ = false;
        if (!error) Pump();
      });
    }
  }

  void Poll() {
    std::array<gannet::Completion, 16> done;
    const size_t n = client_->Poll(done);
    for (size_t i = 0; i < n; ++i) Finish(done[i]);
  }

  void Finish(const gannet::Completion& done) {
    const auto node = requests_.extract(done.user_data);
    const Request& request = node.mapped();
    const size_t size = std::min<size_t>(done.info.value_bytes, request.buffer.size());
    request.answer(done, {reinterpret_cast<const char*>(request.buffer.data()), size});
  }

  const std::unique_ptr<gannet::AsyncClient> client_;
  asio::posix::stream_descriptor readable_;  // of its own, as it closes the descriptor
  std::map<uint64_t, Request> requests_;
  uint64_t last_ = 0;
  bool pump_is_due_ = false;
  bool waits_ = false;
  bool ends_ = false;
};

class Lines {
 public:
  Lines(asio::io_context& loop, LoopClient& client)
      : client_(client), input_(loop, dup(STDIN_FILENO)) {}

  void ReadOne() {
    asio::async_read_until(input_, text_, '\n', [this](const asio::error_code& error, size_t) {
      if (error) return client_.End();  // the end of the input
      std::istream stream(&text_);
      std::string line;
      std::getline(stream, line);
      if (!line.empty()) Begin(line);
      ReadOne();
    });
  }

 private:
  void Begin(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string key = line.substr(0, space);
    const auto show = [key](const gannet::Completion& done, std::string_view value) {
      std::cout << key;
      if (done.code != absl::StatusCode::kOk) {
        std::cout << ": " << absl::StatusCodeToString(done.code) << "\n";
      } else if (done.type == gannet::OpType::kPut) {
        std::cout << " is stored\n";
      } else {
        std::cout << (done.found ? " = " + std::string(value) : " is absent") << "\n";
      }
    };
    if (space == line.npos) {
      client_.Get(key, show);
    } else {
      client_.Put(key, line.substr(space + 1), show);
    }
  }

  LoopClient& client_;
  asio::posix::stream_descriptor input_;
  asio::streambuf text_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: event_loop_asio HOST:PORT\n";
    return 2;
  }
  auto connected = gannet::AsyncClient::Connect({argv[1]});
  if (!connected.ok()) {
    std::cerr << connected.status() << "\n";
    return 1;
  }
  asio::io_context loop;
  LoopClient client(loop, *std::move(connected));
  Lines lines(loop, client);
  lines.ReadOne();
  loop.run();
  return 0;
}
