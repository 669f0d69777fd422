#ifndef GANNET_TESTS_SOFTVERBS_SUPPORT_CHILD_H_
#define GANNET_TESTS_SOFTVERBS_SUPPORT_CHILD_H_

#include <sys/types.h>

#include <string>
#include <type_traits>

namespace softverbs {

// A second process: this test program again, run in one of its roles. A role is a function that
// gets a socket to the test and returns the exit code. child_main.cc is the program's main.
using Role = int (*)(int socket);
struct RegisterRole {
  RegisterRole(const char* name, Role role);
};
// Runs a role and returns its exit code, or -1 if `argument` names none.
int RunRole(const char* argument);

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

class Child {
 public:
  explicit Child(const std::string& role);
  ~Child();  // kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int socket() const { return socket_; }
  void Signal(int signal);
  // Closes the socket, which tells the role to end. Returns the exit code, or -signal.
  int Finish();

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
};

}  // namespace softverbs

#endif  // GANNET_TESTS_SOFTVERBS_SUPPORT_CHILD_H_
