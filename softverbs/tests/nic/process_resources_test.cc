#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/verbs_fixture.h"

// What a process takes from the host, what it is refused, and that its death returns all of it.

namespace softverbs {
namespace {

using test_support::KilledBy;
using test_support::Put;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

constexpr uint32_t kSlotShift = 13;  // of a queue pair number: softverbs/DESIGN.md

std::set<std::string> NamesIn(const char* directory) {
  std::set<std::string> names;
  DIR* dir = opendir(directory);
  if (dir == nullptr) return names;
  while (const dirent* entry = readdir(dir)) names.insert(entry->d_name);
  closedir(dir);
  return names;
}

size_t LinesWith(const char* file, const std::string& text) {
  size_t count = 0;
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if ((line + "\n").find(text) != std::string::npos) ++count;
  }
  return count;
}

bool SocketNameExists(const std::string& name) {
  return LinesWith("/proc/net/unix", "@" + name + "\n") != 0;
}

bool Becomes(const std::function<bool()>& condition) {
  const int64_t give_up = NowNs() + kTimeoutNs;
  while (!condition()) {
    if (NowNs() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

// --- kill -9
// --------------------------------------------------------------------------------------

struct Holding {
  Address address;
  in_port_t port;  // network byte order
};

// Holds one of everything: a slot, a mapped region, a queue pair, a listener of rdma_cm.
int Hold(int socket) {
  Owned<ibv_context> device = OpenDevice();
  SideOptions options;
  options.kind = MemoryKind::kMapped;
  options.memory = 1 << 16;
  Side side(device.get(), options);
  rdma_event_channel* events = rdma_create_event_channel();
  rdma_cm_id* listener = nullptr;
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (rdma_create_id(events, &listener, nullptr, RDMA_PS_TCP) != 0) return 2;
  if (rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&any)) != 0) return 3;
  if (rdma_listen(listener, 1) != 0) return 4;
  Put(socket, Holding{side.address(), rdma_get_src_port(listener)});
  side.Connect(Take<Address>(socket));
  Put(socket, char{1});
  for (;;) pause();
}
const RegisterRole hold_role("hold", Hold);

class KillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // Makes the process's adapter and its link to itself before counting anything.
    Pair warm_up(device_.get());
    descriptors_ = NamesIn("/proc/self/fd").size();
    mappings_ = LinesWith("/proc/self/maps", "softverbs-");
    child_ = std::make_unique<RoleProcess>("hold");
    holding_ = Take<Holding>(child_->socket());
    ASSERT_TRUE(SocketNameExists(SlotName()));
    ASSERT_TRUE(SocketNameExists(PortName()));
  }

  void Connect() {
    side_ = std::make_unique<Side>(device_.get(), SideOptions{});
    side_->ToRtr(holding_.address);
    Put(child_->socket(), side_->address());
    ASSERT_EQ(Take<char>(child_->socket()), 1);
    side_->ToRts();
  }
  ibv_wc_status Read() {
    EXPECT_EQ(side_->Read(1, 0, 4096, holding_.address, 0), 0);
    return side_->Next().status;
  }
  void AwaitMapping() {
    EXPECT_TRUE(Becomes([&] {
      EXPECT_EQ(Read(), IBV_WC_SUCCESS);
      return LinesWith("/proc/self/maps", "softverbs-test") != 0;
    }));
  }

  void ExpectNothingLeft() {
    child_->process().Signal(SIGKILL);
    EXPECT_EQ(child_->Finish(), KilledBy(SIGKILL));
    EXPECT_FALSE(SocketNameExists(SlotName()));
    EXPECT_FALSE(SocketNameExists(PortName()));
    for (const std::string& name : NamesIn("/dev/shm")) {
      EXPECT_EQ(name.find("softverbs"), std::string::npos) << name;
    }
    side_.reset();
    // Its memory goes with the last process that maps it, which is this one.
    EXPECT_TRUE(Becomes([&] { return LinesWith("/proc/self/maps", "softverbs-") <= mappings_; }))
        << LinesWith("/proc/self/maps", "softverbs-") << " of " << mappings_;
    EXPECT_TRUE(Becomes([&] { return NamesIn("/proc/self/fd").size() <= descriptors_; }))
        << NamesIn("/proc/self/fd").size() << " of " << descriptors_;
  }

  std::string SlotName() const {
    return "softverbs/nic/" + std::to_string(holding_.address.qp_num >> kSlotShift);
  }
  std::string PortName() const {
    return "softverbs/cm/0106/127.0.0.1/" + std::to_string(ntohs(holding_.port));
  }

  Owned<ibv_context> device_ = OpenDevice();
  size_t descriptors_ = 0;
  size_t mappings_ = 0;
  std::unique_ptr<RoleProcess> child_;
  Holding holding_{};
  std::unique_ptr<Side> side_;
};

TEST_F(KillTest, AloneLeavesNothing) { ExpectNothingLeft(); }

TEST_F(KillTest, ConnectedLeavesNothing) {
  Connect();
  ExpectNothingLeft();
}

TEST_F(KillTest, WithItsMemoryMappedLeavesNothing) {
  Connect();
  AwaitMapping();
  ExpectNothingLeft();
}

TEST_F(KillTest, WithWorkInFlightLeavesNothing) {
  Connect();
  ASSERT_EQ(side_->PostSend(1, 0, 8), 0);  // no receive is posted: retried for ever
  ASSERT_EQ(side_->Read(2, 0, 4096, holding_.address, 0), 0);
  ExpectNothingLeft();
}

// --- limits
// ---------------------------------------------------------------------------------------

// Runs `call` with one more descriptor each time until it succeeds. Every earlier call must have
// failed with EMFILE. Returns 0, or a number for what was wrong.
int WithMoreAndMoreDescriptors(const std::function<bool()>& call) {
  // The limit bounds descriptor numbers, and the next free number is the first new one.
  const int next = dup(0);
  close(next);
  int failures = 0;
  for (int limit = next; limit < next + 32; ++limit) {
    const rlimit few = {.rlim_cur = static_cast<rlim_t>(limit), .rlim_max = 1024};
    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 2;
    errno = 0;
    if (call()) return failures > 0 ? 0 : 3;
    if (errno != EMFILE) return 4;
    ++failures;
  }
  return 5;
}

int OpenWithFewDescriptors(int) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  return WithMoreAndMoreDescriptors([&] { return ibv_open_device(list[0]) != nullptr; });
}
const RegisterRole open_role("open_with_few_descriptors", OpenWithFewDescriptors);

int ChannelWithFewDescriptors(int) {
  return WithMoreAndMoreDescriptors([] { return rdma_create_event_channel() != nullptr; });
}
const RegisterRole channel_role("channel_with_few_descriptors", ChannelWithFewDescriptors);

class DescriptorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test_support::kAddressSanitizer)
      GTEST_SKIP() << "UBSan needs a pipe to check a call of a virtual function";
  }
};

TEST_F(DescriptorTest, ADeviceThatCannotBeOpenedSaysSo) {
  EXPECT_EQ(RoleProcess("open_with_few_descriptors").Finish(), 0);
}

TEST_F(DescriptorTest, AnEventChannelThatCannotBeMadeSaysSo) {
  EXPECT_EQ(RoleProcess("channel_with_few_descriptors").Finish(), 0);
}

// Returns the result of registering `pages` pages: 0 or the error number.
int TryRegister(ibv_pd* pd, std::vector<uint8_t>& memory, size_t pages, Owned<ibv_mr>* mr) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* begin = memory.data() + page - reinterpret_cast<uintptr_t>(memory.data()) % page;
  errno = 0;
  mr->reset(ibv_reg_mr(pd, begin, pages * page, static_cast<int>(kAllAccess)));
  return *mr ? 0 : errno;
}

// With a limit of ten pages, each registration is counted, and given back.
int MemoryLock(int) {
  setenv("SOFTVERBS_MEMLOCK", "1", 1);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const rlimit ten_pages = {.rlim_cur = 10 * page, .rlim_max = 10 * page};
  EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &ten_pages), 0);
  Owned<ibv_context> device = OpenDevice();
  Owned<ibv_pd> pd(ibv_alloc_pd(device.get()));
  std::vector<uint8_t> memory(12 * page);
  Owned<ibv_mr> first, second;
  EXPECT_EQ(TryRegister(pd.get(), memory, 11, &first), ENOMEM);
  EXPECT_EQ(TryRegister(pd.get(), memory, 6, &first), 0);
  EXPECT_EQ(TryRegister(pd.get(), memory, 5, &second), ENOMEM);
  EXPECT_EQ(TryRegister(pd.get(), memory, 4, &second), 0);
  first.reset();
  second.reset();
  EXPECT_EQ(TryRegister(pd.get(), memory, 10, &first), 0);
  // A range counts the pages it touches.
  first.reset(ibv_reg_mr(pd.get(), memory.data() + page - 1, 9 * page + 2, 0));
  EXPECT_EQ(first, nullptr);
  return ::testing::Test::HasFailure() ? 1 : 0;
}
const RegisterRole memory_lock_role("memory_lock", MemoryLock);

TEST(MemoryLockTest, RegistrationPastTheLimitIsRefused) {
  EXPECT_EQ(RoleProcess("memory_lock").Finish(), 0);
}

// --- slots
// ----------------------------------------------------------------------------------------

uint32_t SlotOf(ibv_context* device) { return Side(device, {}).address().qp_num >> kSlotShift; }

TEST(SlotTest, AProcessHasOneHoweverManyOpenTheDevice) {
  constexpr int kThreads = 8;
  std::vector<uint32_t> slots(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { slots[i] = SlotOf(OpenDevice().get()); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const uint32_t slot : slots) EXPECT_EQ(slot, slots[0]);
  EXPECT_TRUE(SocketNameExists("softverbs/nic/" + std::to_string(slots[0])));
}

TEST(SlotTest, AForkedChildTakesOneOfItsOwn) {
  if (test_support::kThreadSanitizer) GTEST_SKIP() << "TSan does not support threads after fork";
  const Owned<ibv_context> device = OpenDevice();
  const uint32_t slot = SlotOf(device.get());
  const pid_t forked = fork();
  if (forked == 0) {
    const Owned<ibv_context> own = OpenDevice();
    _exit(SlotOf(own.get()) != slot && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(forked, &status, 0), forked);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(SlotOf(device.get()), slot);
}

// --- SOFTVERBS_VERBOSE
// -------------------------------------------------------------------------------

// What this process printed on stderr since.
class Printed {
 public:
  Printed() : fd_(memfd_create("stderr", MFD_CLOEXEC)), stderr_(dup(2)) { dup2(fd_, 2); }
  ~Printed() {
    dup2(stderr_, 2);
    close(stderr_);
    close(fd_);
  }
  bool Has(const std::string& text) const {
    char bytes[4096];
    const ssize_t size = pread(fd_, bytes, sizeof(bytes), 0);
    return size > 0 && std::string(bytes, size).find(text) != std::string::npos;
  }

 private:
  const int fd_;
  const int stderr_;
};

int UnknownPortSpace(int) {
  setenv("SOFTVERBS_VERBOSE", "1", 1);
  const Printed printed;
  rdma_event_channel* events = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(events, &id, nullptr, static_cast<rdma_port_space>(0x17)) == 0) return 2;
  return printed.Has("unknown port space 0x17") ? 0 : 3;
}
const RegisterRole port_space_role("unknown_port_space", UnknownPortSpace);

TEST(VerboseTest, NamesAnUnknownPortSpace) {
  EXPECT_EQ(RoleProcess("unknown_port_space").Finish(), 0);
}

// A program whose queue is too small waits for ever for what was lost.
int Overrun(int) {
  setenv("SOFTVERBS_VERBOSE", "1", 1);
  Owned<ibv_context> device = OpenDevice();
  SideOptions small;
  small.cqe = 2;
  Pair pair(device.get(), {}, small);
  const Printed printed;
  for (int i = 0; i < 3; ++i) pair.b.PostReceive(i, 0, 64);
  for (int i = 0; i < 3; ++i) {
    if (pair.a.PostSend(i, 0, 8) != 0 || pair.a.Next().status != IBV_WC_SUCCESS) return 2;
  }
  return printed.Has("overrun: it has 2 places") ? 0 : 3;
}
const RegisterRole overrun_role("overrun", Overrun);

TEST(VerboseTest, SaysThatACompletionQueueIsTooSmall) {
  EXPECT_EQ(RoleProcess("overrun").Finish(), 0);
}

// READs what no key allows, in four ways.
int RefusedReads(int) {
  setenv("SOFTVERBS_VERBOSE", "1", 1);
  Owned<ibv_context> device = OpenDevice();
  const auto says = [&](const SideOptions& target, const ConnectOptions& connect, auto change,
                        const char* words) {
    const Printed printed;
    Pair pair(device.get(), {}, target, connect);
    Address peer = pair.b.address();
    change(peer);
    if (pair.a.Read(1, 0, 64, peer, 0) != 0) return false;
    if (pair.a.Next().status != IBV_WC_REM_ACCESS_ERR) return false;
    return printed.Has("refused a READ of queue pair") && printed.Has("64 bytes at 0x") &&
           printed.Has(words);
  };
  const auto nothing = [](Address&) {};
  if (!says(
          {}, {}, [](Address& peer) { peer.rkey ^= 0x3f00; }, "no region has this key"))
    return 2;
  if (!says(
          {}, {}, [](Address& peer) { peer.memory += (1 << 20) - 63; }, "not inside"))
    return 3;
  if (!says({.access = IBV_ACCESS_LOCAL_WRITE}, {}, nothing, "the region lacks")) return 4;
  if (!says({}, {.access = 0}, nothing, "(qp_access_flags) lacks")) return 5;
  return testing::Test::HasFailure() ? 1 : 0;
}
const RegisterRole refused_reads_role("refused_reads", RefusedReads);

TEST(VerboseTest, SaysWhyARemoteAccessIsRefused) {
  EXPECT_EQ(RoleProcess("refused_reads").Finish(), 0);
}

constexpr int kNoNamespace = 77;

// Binds every slot's name in a network namespace of its own, as a hostile user could.
int NoFreeSlot(int) {
  constexpr int kNames = 2047;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kNoNamespace;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max < kNames + 100) return kNoNamespace;
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) return 2;
  for (int slot = 1; slot <= kNames; ++slot) {
    const std::string name = "softverbs/nic/" + std::to_string(slot);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) return 3;
  }
  setenv("SOFTVERBS_VERBOSE", "1", 1);
  const Printed printed;
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  errno = 0;
  if (count != 1 || ibv_open_device(list[0]) != nullptr) return 4;
  if (errno != EADDRINUSE) return 5;
  ibv_free_device_list(list);
  return printed.Has("no free slot") ? 0 : 6;
}
const RegisterRole no_slot_role("no_free_slot", NoFreeSlot);

TEST(VerboseTest, SaysThatNoSlotIsFree) {
  const std::optional<int> result = RoleProcess("no_free_slot").Finish();
  if (result == kNoNamespace) GTEST_SKIP() << "needs a network namespace of its own";
  EXPECT_EQ(result, 0);
}

}  // namespace
}  // namespace softverbs
