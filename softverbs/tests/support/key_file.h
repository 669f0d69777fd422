#ifndef SOFTVERBS_TESTS_SUPPORT_KEY_FILE_H_
#define SOFTVERBS_TESTS_SUPPORT_KEY_FILE_H_

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include "softverbs/tests/support/temporary_directory.h"

namespace test_support {

// A file that only its owner may read. Removed with the object.
class KeyFile {
 public:
  explicit KeyFile(std::string_view text) { Write(text); }

  const std::string& path() const { return path_; }
  // Puts another file in its place at once, as a careful person does.
  void Write(std::string_view text) {
    const std::string other = path_ + ".new";
    {
      std::ofstream file(other);
      chmod(other.c_str(), S_IRUSR | S_IWUSR);
      file << text;
    }
    EXPECT_EQ(std::rename(other.c_str(), path_.c_str()), 0);
  }

 private:
  const TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/keys";
};

}  // namespace test_support

#endif  // SOFTVERBS_TESTS_SUPPORT_KEY_FILE_H_
