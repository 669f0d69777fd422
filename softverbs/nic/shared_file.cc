#include "softverbs/nic/shared_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "softverbs/nic/shared_memory.h"

namespace softverbs {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { fclose(file); }
};
struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

struct MapsLine {
  uint64_t begin, end, offset, inode;
  dev_t device;
  bool shared;
  bool memory_file;
};

bool ParseMapsLine(const char* text, MapsLine* line) {
  char permissions[5] = "";
  unsigned major_number, minor_number;
  int path = 0;
  if (sscanf(text, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &line->begin,
             &line->end, permissions, &line->offset, &major_number, &minor_number, &line->inode,
             &path) < 7) {
    return false;
  }
  line->device = makedev(major_number, minor_number);
  line->shared = permissions[3] == 's';
  line->memory_file =
      strncmp(text + path, "/memfd:", 7) == 0 || strncmp(text + path, "/dev/shm/", 9) == 0;
  return true;
}

// The file may back the memory in several adjacent mappings, because mprotect and madvise split
// them.
bool FindInMaps(uint64_t begin, uint64_t end, SharedFile* file) {
  std::unique_ptr<FILE, CloseFile> maps(fopen("/proc/self/maps", "re"));
  if (!maps) return false;
  char text[512];
  uint64_t covered = begin;
  while (covered < end && fgets(text, sizeof(text), maps.get()) != nullptr) {
    MapsLine line;
    if (!ParseMapsLine(text, &line) || line.end <= covered) continue;
    if (line.begin > covered || !line.shared || !line.memory_file) return false;
    const uint64_t offset = line.offset + (covered - line.begin);
    if (covered == begin) {
      file->device = line.device;
      file->inode = line.inode;
      file->offset = offset;
    } else if (line.device != file->device || line.inode != file->inode ||
               offset != file->offset + (covered - begin)) {
      return false;
    }
    covered = line.end;
  }
  return covered >= end;
}

bool IsSame(const struct stat& info, const SharedFile& file) {
  return info.st_dev == file.device && info.st_ino == file.inode;
}

bool IsOpenFor(int fd, bool writable) {
  const int mode = fcntl(fd, F_GETFL) & O_ACCMODE;
  return mode == O_RDWR || (!writable && mode == O_RDONLY);
}

// Other threads own the descriptors, and open and close them meanwhile. So this looks at them by
// path, which does not use them, and which ThreadSanitizer does not take for a use.
int FindOpenFd(const SharedFile& file, bool writable) {
  std::unique_ptr<DIR, CloseDirectory> directory(opendir("/proc/self/fd"));
  if (!directory) return -1;
  while (const dirent* entry = readdir(directory.get())) {
    struct stat info;
    if (fstatat(dirfd(directory.get()), entry->d_name, &info, 0) != 0) continue;
    const int fd = atoi(entry->d_name);
    if (entry->d_name[0] != '.' && IsSame(info, file) && IsOpenFor(fd, writable)) return fd;
  }
  return -1;
}

}  // namespace

SharedFile FindSharedFile(const void* address, size_t length, bool writable) {
  SharedFile file;
  const auto begin = reinterpret_cast<uint64_t>(address);
  if (length == 0 || !FindInMaps(begin, begin + length, &file)) return file;
  const int found = FindOpenFd(file, writable);
  if (found < 0) return file;
  file.fd = writable ? UniqueFd(fcntl(found, F_DUPFD_CLOEXEC, 0)) : ReopenReadOnly(found);
  struct stat info;
  // The descriptor may have been closed and its number reused meanwhile, so check the one we got.
  if (!file.fd || fstat(file.fd.get(), &info) != 0 || !IsSame(info, file) ||
      !IsOpenFor(file.fd.get(), writable)) {
    file.fd.Reset();
    return file;
  }
  file.size = static_cast<uint64_t>(info.st_size);
  return file;
}

}  // namespace softverbs
