#include "tests/server/memory/store/store_trace.h"

#include <glog/logging.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>

#include "common/base/words.h"

namespace gannet {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr size_t kStoresMax = 4 << 20;  // reserved, so that a handler never allocates
StoreTrace* active = nullptr;

#if defined(__x86_64__)
constexpr uint64_t kTrapFlag = 0x100;
void SingleStep(void* context, bool on) {
  auto& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
  flags = on ? flags | kTrapFlag : flags & ~kTrapFlag;
}
#else
void SingleStep(void*, bool) {}
#endif

void Handle(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = handler;
  PCHECK(sigaction(signal, &action, nullptr) == 0);
}

}  // namespace

bool StoreTrace::Supported() {
#if defined(__x86_64__)
  return true;
#else
  return false;
#endif
}

StoreTrace::StoreTrace(std::span<std::byte> region)
    : region_(region), initial_(region.begin(), region.end()) {
  CHECK(active == nullptr);
  active = this;
  stores_.reserve(kStoresMax);
  Handle(SIGSEGV,
         [](int signal, siginfo_t* info, void* context) { OnFault(signal, info, context); });
  Handle(SIGTRAP,
         [](int signal, siginfo_t* info, void* context) { OnStep(signal, info, context); });
  recording_ = true;
  Protect(0, region_.size(), /*writable=*/false);
}

StoreTrace::~StoreTrace() {
  if (recording_) Stop();
}

void StoreTrace::Stop() {
  recording_ = false;
  Protect(0, region_.size(), /*writable=*/true);
  signal(SIGSEGV, SIG_DFL);
  signal(SIGTRAP, SIG_DFL);
  active = nullptr;
  for (uint32_t i = 0; i < stores_.size(); ++i) {
    words_[stores_[i].offset].push_back({i + 1, stores_[i].value});
  }
}

void StoreTrace::OnFault(int, void* info, void* context) {
  const auto* address = static_cast<std::byte*>(static_cast<siginfo_t*>(info)->si_addr);
  if (active == nullptr || address < active->region_.data() ||
      address >= active->region_.data() + active->region_.size()) {
    signal(SIGSEGV, SIG_DFL);  // somebody's bug: let it crash where it is
    return;
  }
  active->stepping_ = (address - active->region_.data()) & ~7ull;
  active->Protect(active->stepping_, kPageBytes, /*writable=*/true);
  SingleStep(context, true);
}

void StoreTrace::OnStep(int, void*, void* context) {
  SingleStep(context, false);
  const uint64_t offset = active->stepping_;
  CHECK_LT(active->stores_.size(), kStoresMax);
  active->stores_.push_back({offset, LoadWord(active->region_.data() + offset)});
  active->Protect(offset, kPageBytes, /*writable=*/false);
}

void StoreTrace::Protect(uint64_t offset, uint64_t bytes, bool writable) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  const uint64_t page = offset / kPageBytes * kPageBytes;
  PCHECK(mprotect(region_.data() + page, bytes, protection) == 0);
}

uint64_t StoreTrace::WordAt(uint64_t offset, uint32_t time) const {
  const auto word = words_.find(offset);
  if (word != words_.end()) {
    const auto after =
        std::upper_bound(word->second.begin(), word->second.end(), time,
                         [](uint32_t t, const Value& value) { return t < value.time; });
    if (after != word->second.begin()) return (after - 1)->value;
  }
  uint64_t value;
  std::memcpy(&value, initial_.data() + offset, sizeof(value));
  return value;
}

bool StoreTrace::Complete() const {
  for (uint64_t offset = 0; offset < region_.size(); offset += 8) {
    if (WordAt(offset, now()) != LoadWord(region_.data() + offset)) return false;
  }
  return true;
}

}  // namespace gannet
