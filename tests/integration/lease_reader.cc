// A client with a near cache in its own process: lease_reader DEVICE ENDPOINT KEY... It GETs the
// keys in turn until its stdin has a line. Then it prints
//   <key's number> <value, 0: none> <call, ns> <return, ns>     of the first and the last GET of
//                                                               each run of equal answers of a key
//   END <answers from copies> <copies whose lease was over>
// GETs without an answer are left out.

#include <gannet/client.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "common/rdma/device_choice.h"
#include "tests/client/api/patient_options.h"

namespace gannet {
namespace {

struct Answer {
  uint64_t value = 0;
  int64_t call_ns = 0;
  int64_t return_ns = 0;
};

// The answers for one key. Of a run of equal ones, those between the first and the last say nothing
// more.
class Answers {
 public:
  void Add(const Answer& answer) {
    const size_t n = all_.size();
    if (n >= 2 && all_[n - 1].value == answer.value && all_[n - 2].value == answer.value) {
      all_.back() = answer;
    } else {
      all_.push_back(answer);
    }
  }
  const std::vector<Answer>& all() const { return all_; }

 private:
  std::vector<Answer> all_;
};

int Main(int argc, char** argv) {
  if (auto device = UseDevice(argv[1], argv); !device.ok()) {
    std::cerr << device.status() << std::endl;
    return 1;
  }
  Options options = PatientOptions();
  options.near_cache_bytes = 1 << 20;
  auto client = Client::Connect({argv[2]}, options);
  if (!client.ok()) {
    std::cerr << client.status() << std::endl;
    return 1;
  }
  std::atomic<bool> stop = false;
  std::thread stopper([&stop] {
    std::string line;
    std::getline(std::cin, line);
    stop.store(true);
  });
  std::vector<std::string> keys(argv + 3, argv + argc);
  std::vector<Answers> seen(keys.size());
  for (size_t i = 0; !stop.load(); ++i) {
    const size_t key = i % keys.size();
    Answer answer{.call_ns = MonotonicNs()};
    const auto got = (*client)->Get(keys[key]);
    answer.return_ns = MonotonicNs();
    if (!got.ok()) continue;
    if (got->has_value()) answer.value = std::strtoull((*got)->data.c_str(), nullptr, 10);
    seen[key].Add(answer);
  }
  stopper.join();
  for (size_t key = 0; key < keys.size(); ++key) {
    for (const Answer& answer : seen[key].all()) {
      std::cout << key << ' ' << answer.value << ' ' << answer.call_ns << ' ' << answer.return_ns
                << '\n';
    }
  }
  const ServerInfo info = (*client)->Info()[0];
  std::cout << "END " << info.near_cache_answers << ' ' << info.near_cache_over << std::endl;
  return 0;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) { return argc >= 4 ? gannet::Main(argc, argv) : 2; }
