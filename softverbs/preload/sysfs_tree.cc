#include "softverbs/preload/sysfs_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "softverbs/base/devices.h"
#include "softverbs/base/fork.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/base/log.h"
#include "softverbs/base/mutex.h"
#include "softverbs/preload/device_files.h"
#include "softverbs/preload/next_call.h"

namespace softverbs::preload {
namespace {

constexpr std::string_view kPrefix = "softverbs-sys.";  // then the process, a dot, and six letters

void RemoveAll(const std::string& folder) {
  constexpr int kOpenFolders = 8;
  nftw(
      folder.c_str(), [](const char* path, const struct stat*, int, FTW*) { return remove(path); },
      kOpenFolders, FTW_DEPTH | FTW_PHYS);
}

// Calls `each` with the names in a folder, as the kernel has it.
void ForEachName(const char* folder, const std::function<void(std::string_view)>& each) {
  DIR* entries = Next<"opendir", DIR*(const char*)>()(folder);
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") each(name);
  }
  closedir(entries);
}

// Removes the trees of processes of this user that have ended, and of those that this process
// executed before. `folder` is where trees are made.
void RemoveOthers(const std::string& folder) {
  ForEachName(folder.c_str(), [&](std::string_view name) {
    if (!name.starts_with(kPrefix)) return;
    const pid_t owner = atoi(std::string(name.substr(kPrefix.size())).c_str());
    const std::string path = folder + "/" + std::string(name);
    struct stat info;
    if (owner <= 0 || lstat(path.c_str(), &info) != 0 || info.st_uid != geteuid()) return;
    if (owner == getpid() || (kill(owner, 0) != 0 && errno == ESRCH)) RemoveAll(path);
  });
}

// Returns a new folder that only this user can enter, or an empty text.
std::string MakeRoot() {
  const char* const folders[] = {secure_getenv("XDG_RUNTIME_DIR"), "/tmp"};
  for (const char* folder : folders) {
    if (folder == nullptr || *folder != '/') continue;
    RemoveOthers(folder);
    std::string path = folder;
    path.append("/").append(kPrefix).append(std::to_string(getpid())).append(".XXXXXX");
    if (mkdtemp(path.data()) != nullptr) return path;
  }
  Report("no folder for what /sys/class/infiniband shows: it is as the kernel has it");
  return "";
}

// Makes the folders of a path that are behind its first `from` letters.
void MakeFolders(const std::string& path, size_t from) {
  for (size_t at = from; (at = path.find('/', at + 1)) != std::string::npos;) {
    mkdir(path.substr(0, at).c_str(), 0755);
  }
}

void MakeFile(const std::string& path, const std::string& content) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
  if (fd < 0) return;
  if (write(fd, content.data(), content.size()) < 0)
    Report("%s: %s", path.c_str(), strerror(errno));
  close(fd);
}

void MakeLink(const std::string& to, const std::string& path, size_t from) {
  MakeFolders(path, from);
  if (symlink(to.c_str(), path.c_str()) != 0) Report("%s: %s", path.c_str(), strerror(errno));
}

std::vector<std::string> KernelsDevices() {
  std::vector<std::string> names;
  ForEachName(kSysfsClass.data(), [&](std::string_view name) { names.emplace_back(name); });
  std::ranges::sort(names);
  return names;
}

// By port.
using Tables = std::vector<std::vector<Gid>>;

Tables ReadTables() {
  RefreshGids();
  Tables tables;
  for (int port = 0; port < PortCount(); ++port) tables.push_back(ValidGids(port));
  return tables;
}

bool Same(const std::vector<Gid>& some, const std::vector<Gid>& others) {
  return std::ranges::equal(some, others, [](const Gid& one, const Gid& other) {
    return one.index == other.index && one.interface == other.interface &&
           Equal(one.gid, other.gid);
  });
}

class Tree {
 public:
  std::string Folder(Look look) {
    const LockGuard guard(mutex_);
    const bool is_there = !root_.empty() && Next<"access", int(const char*, int)>()(
                                                FolderLocked().c_str(), F_OK) == 0;
    if (is_there && look == Look::kAsBefore) return FolderLocked();
    const Tables gids = ReadTables();
    const std::vector<std::string> devices = KernelsDevices();
    if (!is_there || devices != devices_ || !std::ranges::equal(gids, gids_, Same))
      Make(gids, devices);
    return root_.empty() ? "" : FolderLocked();
  }
  void Remove() {
    const LockGuard guard(mutex_);
    if (!root_.empty() && owner_ == getpid()) RemoveAll(root_);
    root_.clear();
  }

 private:
  std::string FolderLocked() SV_REQUIRES(mutex_) { return root_ + "/" + std::to_string(version_); }

  // What a thread is about to open in the version before this one stays there.
  void Make(const Tables& gids, const std::vector<std::string>& devices) SV_REQUIRES(mutex_) {
    if (root_.empty() || Next<"access", int(const char*, int)>()(root_.c_str(), F_OK) != 0) {
      root_ = MakeRoot();
      owner_ = getpid();
    }
    if (root_.empty()) return;
    if (version_ > 0) RemoveAll(root_ + "/" + std::to_string(version_ - 1));
    ++version_;
    for (int number = 0; number < DeviceCount(); ++number) MakeDevice(number, gids);
    for (const std::string& name : devices) {
      MakeLink(std::string(kSysfsClass) + "/" + name, FolderLocked() + "/" + name, root_.size());
    }
    gids_ = gids;
    devices_ = devices;
  }
  void MakeDevice(int number, const Tables& gids) SV_REQUIRES(mutex_) {
    const std::string device = FolderLocked() + "/" + DeviceName(number) + "/";
    // Files with the same content are one: most GIDs are zeros.
    std::map<std::string, std::string> made;
    for (const DeviceFile& file : DeviceFiles(number, gids)) {
      const std::string path = device + file.path;
      MakeFolders(path, root_.size());
      const auto [same, is_new] = made.try_emplace(file.content, path);
      if (is_new || link(same->second.c_str(), path.c_str()) != 0) MakeFile(path, file.content);
    }
    const auto first = static_cast<size_t>(PortOf(number, 1));
    if (const std::string interface = NetworkInterface(gids[first]); !interface.empty()) {
      MakeLink("/sys/class/net/" + interface, device + "device/net/" + interface, root_.size());
    }
  }

  Mutex mutex_;
  std::string root_ SV_GUARDED_BY(mutex_);
  pid_t owner_ SV_GUARDED_BY(mutex_) = 0;
  unsigned version_ SV_GUARDED_BY(mutex_) = 0;
  Tables gids_ SV_GUARDED_BY(mutex_);
  std::vector<std::string> devices_ SV_GUARDED_BY(mutex_);
};

std::atomic<Tree*> the_tree{nullptr};
std::atomic<bool> ended{false};

// Never destroyed, and new in a forked child, as the table of GIDs (gid_table.cc).
Tree& TheTree() {
  static const bool created = [] {
    const auto renew = [] { the_tree.store(new Tree, std::memory_order_relaxed); };
    OnForkChild(renew);
    renew();  // relaxed: the guard of this static orders it before every caller's load
    return true;
  }();
  (void)created;
  return *the_tree.load(std::memory_order_relaxed);
}

// What is called after this, at the end of the process, is shown no tree.
__attribute__((destructor)) void RemoveAtExit() {
  if (ended.exchange(true, std::memory_order_relaxed)) return;
  if (Tree* tree = the_tree.load(std::memory_order_relaxed)) tree->Remove();
}

}  // namespace

std::string SysfsTree(Look look) {
  if (ended.load(std::memory_order_relaxed)) return "";
  return TheTree().Folder(look);
}

}  // namespace softverbs::preload
