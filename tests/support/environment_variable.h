#ifndef GANNET_TESTS_SUPPORT_ENVIRONMENT_VARIABLE_H_
#define GANNET_TESTS_SUPPORT_ENVIRONMENT_VARIABLE_H_

#include <cstdlib>
#include <string>
#include <utility>

namespace test_support {

// A variable of this process and of the programs that it starts, for as long as this lives.
// REQUIRES: it was not set before, and no other thread uses the environment.
class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), /*overwrite=*/1);
  }
  ~EnvironmentVariable() { unsetenv(name_.c_str()); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const std::string name_;
};

}  // namespace test_support

#endif  // GANNET_TESTS_SUPPORT_ENVIRONMENT_VARIABLE_H_
