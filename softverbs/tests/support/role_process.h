#ifndef SOFTVERBS_TESTS_SUPPORT_ROLE_PROCESS_H_
#define SOFTVERBS_TESTS_SUPPORT_ROLE_PROCESS_H_

#include <optional>
#include <string>
#include <type_traits>

#include "softverbs/tests/support/child_process.h"

namespace test_support {

// A second process: this test program again, run in one of its roles. A role is a function that
// gets a socket to the test and returns the exit code. The program's main() calls RunRole, as that
// of role_main.cc does.
using Role = int (*)(int socket);
struct RegisterRole {
  RegisterRole(const char* name, Role role);
};
// Returns the argument that makes this program run a role.
std::string RoleArgument(const std::string& role);
// If the only argument of the program is that of a role, runs the role and returns its exit code.
std::optional<int> RunRole(int argc, char** argv);

void SendBytes(int socket, const void* data, size_t size);
// Returns false at end of file.
bool ReceiveBytes(int socket, void* data, size_t size);

template <class T>
void Put(int socket, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  SendBytes(socket, &value, sizeof(value));
}
template <class T>
T Take(int socket) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  ReceiveBytes(socket, &value, sizeof(value));
  return value;
}

class RoleProcess {
 public:
  explicit RoleProcess(const std::string& role);
  ~RoleProcess();  // kills it
  RoleProcess(const RoleProcess&) = delete;
  RoleProcess& operator=(const RoleProcess&) = delete;

  int socket() const { return sockets_.ours; }
  ChildProcess& process() { return process_; }
  // Closes the socket, which tells the role to end. Returns what ChildProcess::Wait does.
  std::optional<int> Finish();

 private:
  struct Sockets {
    Sockets();
    int ours = -1;
    int its = -1;
  };

  Sockets sockets_;
  ChildProcess process_;
};

}  // namespace test_support

#endif  // SOFTVERBS_TESTS_SUPPORT_ROLE_PROCESS_H_
