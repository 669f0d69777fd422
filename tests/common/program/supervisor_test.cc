#include "common/program/supervisor.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/clock.h"

namespace gannet {
namespace {

// The supervisor's end: a socket with the name that NOTIFY_SOCKET has.
class SupervisorTest : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
  void TearDown() override {
    if (fd_ >= 0) close(fd_);
    if (!path_.empty()) unlink(path_.c_str());
    SetUp();
  }

  // `name` is a path, or begins with '@'.
  void Listen(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    size_t size = offsetof(sockaddr_un, sun_path) + name.size();
    if (name[0] == '@') {
      address.sun_path[0] = '\0';
    } else {
      path_ = name;
      ++size;
    }
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(size)), 0)
        << std::strerror(errno);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }

  // Returns the next message, or nothing if there is none.
  std::string Next() {
    char message[256];
    const ssize_t size = recv(fd_, message, sizeof(message), MSG_DONTWAIT);
    return size < 0 ? "" : std::string(message, static_cast<size_t>(size));
  }

  std::string UniqueName() { return "gannet_supervisor_test_" + std::to_string(getpid()); }

  int fd_ = -1;
  std::string path_;
};

TEST_F(SupervisorTest, SaysWhatHappens) {
  for (const std::string& name : {"@" + UniqueName(), testing::TempDir() + UniqueName()}) {
    Listen(name);
    const Supervisor supervisor = Supervisor::FromEnvironment();
    supervisor.NeedsTime("joins", 20 * kNsPerSecond);
    supervisor.Ready("serves");
    supervisor.Alive();
    supervisor.Stopping();
    EXPECT_EQ(Next(), "EXTEND_TIMEOUT_USEC=20000000\nSTATUS=joins") << name;
    EXPECT_EQ(Next(), "READY=1\nSTATUS=serves") << name;
    EXPECT_EQ(Next(), "WATCHDOG=1");
    EXPECT_EQ(Next(), "STOPPING=1");
    EXPECT_EQ(Next(), "");
    close(fd_);
  }
}

TEST_F(SupervisorTest, WithoutASupervisorNothingIsOpened) {
  const int before = dup(0);
  close(before);
  for (const char* name : {"", "relative", "vsock:2:1"}) {
    setenv("NOTIFY_SOCKET", name, 1);
    const Supervisor supervisor = Supervisor::FromEnvironment();
    supervisor.Ready("serves");
    supervisor.Alive();
    EXPECT_EQ(supervisor.beat_ns(), 0);
    const int after = dup(0);
    EXPECT_EQ(after, before) << "a descriptor was opened for '" << name << "'";
    close(after);
  }
}

TEST_F(SupervisorTest, BeatsTwiceWithinTheTimeOfTheWatchdog) {
  Listen("@" + UniqueName());
  EXPECT_EQ(Supervisor::FromEnvironment().beat_ns(), 0) << "nobody watches";
  setenv("WATCHDOG_USEC", "30000000", 1);
  EXPECT_EQ(Supervisor::FromEnvironment().beat_ns(), 15 * kNsPerSecond);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(Supervisor::FromEnvironment().beat_ns(), 15 * kNsPerSecond);
  setenv("WATCHDOG_PID", std::to_string(getpid() + 1).c_str(), 1);
  EXPECT_EQ(Supervisor::FromEnvironment().beat_ns(), 0) << "another process is watched";
  unsetenv("WATCHDOG_PID");
  for (const char* wrong : {"", "-5", "soon", "0"}) {
    setenv("WATCHDOG_USEC", wrong, 1);
    EXPECT_EQ(Supervisor::FromEnvironment().beat_ns(), 0) << wrong;
  }
}

TEST_F(SupervisorTest, ASupervisorThatIsGoneDoesNoHarm) {
  Listen("@" + UniqueName());
  const Supervisor supervisor = Supervisor::FromEnvironment();
  close(fd_);
  fd_ = -1;
  supervisor.Alive();
}

// A queue of datagrams holds some hundreds.
TEST_F(SupervisorTest, ASupervisorThatReadsNothingIsNotWaitedFor) {
  Listen("@" + UniqueName());
  const Supervisor supervisor = Supervisor::FromEnvironment();
  for (int i = 0; i < 100'000; ++i) supervisor.Alive();
  EXPECT_EQ(Next(), "WATCHDOG=1");
}

}  // namespace
}  // namespace gannet
