#ifndef GANNET_TESTS_SUPPORT_SMALL_DISK_H_
#define GANNET_TESTS_SUPPORT_SMALL_DISK_H_

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace test_support {

// A disk that can really be full: a file system of memory that only this process and its children
// see. It ends with them. REQUIRES: the process has no other thread yet, unless it is root.
class SmallDisk {
 public:
  explicit SmallDisk(size_t bytes) : why_not_(Mount(bytes)) {}
  ~SmallDisk() {
    if (why_not_.empty()) umount2(path_.c_str(), MNT_DETACH);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& why_not() const { return why_not_; }  // empty: it is there
  const std::string& path() const { return path_; }

  // Writes a file of so many bytes, or as many as there is room for.
  void Fill(const std::string& name, size_t bytes) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary);
    const std::string piece(4096, 'x');
    for (size_t at = 0; at < bytes && file.good(); at += piece.size()) file << piece << std::flush;
  }
  void Remove(const std::string& name) const { std::filesystem::remove(path_ + "/" + name); }

 private:
  static std::string Failed(const std::string& call) { return call + ": " + std::strerror(errno); }

  std::string Mount(size_t bytes) {
    std::string name = testing::TempDir() + "/gannet-full-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) return Failed("mkdtemp");
    path_ = name;
    const std::string user = std::to_string(getuid());
    if (unshare(CLONE_NEWNS) != 0) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return Failed("unshare");
      std::ofstream("/proc/self/uid_map") << user << " " << user << " 1";
    }
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Failed("mount /");
    const std::string size = "size=" + std::to_string(bytes);
    if (mount("none", path_.c_str(), "tmpfs", 0, size.c_str()) != 0) return Failed("mount tmpfs");
    return "";
  }

  std::string path_;
  const std::string why_not_;
};

}  // namespace test_support

#endif  // GANNET_TESTS_SUPPORT_SMALL_DISK_H_
