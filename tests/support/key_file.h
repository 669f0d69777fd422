#ifndef GANNET_TESTS_SUPPORT_KEY_FILE_H_
#define GANNET_TESTS_SUPPORT_KEY_FILE_H_

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

namespace test_support {

// A file that only its owner may read. Removed with the object.
class KeyFile {
 public:
  explicit KeyFile(std::string_view text) {
    std::string name = testing::TempDir() + "gannet_keys_XXXXXX";
    const int fd = mkstemp(name.data());
    EXPECT_GE(fd, 0) << name;
    close(fd);
    path_ = name;
    Write(text);
  }
  ~KeyFile() { std::remove(path_.c_str()); }
  KeyFile(const KeyFile&) = delete;
  KeyFile& operator=(const KeyFile&) = delete;

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
  std::string path_;
};

}  // namespace test_support

#endif  // GANNET_TESTS_SUPPORT_KEY_FILE_H_
