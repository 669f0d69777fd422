#include "proxy/net/output.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace gannet::proxy {
namespace {

constexpr size_t kLong = 16 << 10;
constexpr size_t kPieceMax = 64 << 10;
constexpr size_t kKept = 16 << 10;

}  // namespace

void Output::Append(std::string* reply) {
  bytes_ += reply->size();
  if (reply->size() >= kLong) {
    pieces_.push_back(std::exchange(*reply, {}));
    return;
  }
  if (pieces_.empty() || pieces_.back().size() + reply->size() > kPieceMax) pieces_.emplace_back();
  pieces_.back().append(*reply);
}

bool Output::Send(int fd) {
  while (bytes_ > 0) {
    const std::string& piece = pieces_.front();
    const ssize_t n = send(fd, piece.data() + at_, piece.size() - at_, MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    at_ += static_cast<size_t>(n);
    bytes_ -= static_cast<size_t>(n);
    sent_ += static_cast<uint64_t>(n);
    if (at_ < piece.size()) continue;
    at_ = 0;
    // Keeps the last short piece, so that one command at a time allocates nothing.
    if (pieces_.size() == 1 && pieces_.front().capacity() <= kKept) {
      pieces_.front().clear();
    } else {
      pieces_.pop_front();
    }
  }
  return true;
}

}  // namespace gannet::proxy
