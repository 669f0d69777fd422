#ifndef SOFTVERBS_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
#define SOFTVERBS_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace test_support {

// An empty directory of this test, which goes with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(testing::TempDir() + "/test-XXXXXX") {
    if (mkdtemp(path_.data()) != nullptr) return;
    std::perror(path_.c_str());
    std::abort();
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace test_support

#endif  // SOFTVERBS_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
