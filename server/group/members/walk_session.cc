// Connects by one way after the other until one is ready, and keeps each READ until it is done. The
// memory that is READ into stays; each device has its own name for it.

#include "server/group/members/walk_session.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rdma/status.h"
#include "glog/logging.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<WalkSession>> WalkSession::Begin(Options options, BootTime now) {
  GANNET_CHECK(!options.ways.empty(), "there is no way to the server");
  std::unique_ptr<WalkSession> made(new WalkSession(std::move(options)));
  GANNET_RETURN_IF_ERROR(made->Connect(now));
  return made;
}

// The memory stays what it is, and has another name on another device.
absl::Status WalkSession::Connect(BootTime now) {
  const Way& way = options_.ways[way_];
  if (options_.pd == nullptr) {
    for (RegisteredBuffer& memory : memories_) memory.mr.reset();
    own_pd_.reset(ibv_alloc_pd(way.device.verbs));
    if (own_pd_ == nullptr) return LastErrnoStatus("ibv_alloc_pd");
    for (RegisteredBuffer& memory : memories_) {
      if (memory.bytes.empty()) continue;
      GANNET_ASSIGN_OR_RETURN(memory.mr,
                              RegisterMemory(own_pd_.get(), memory.bytes, RemoteAccess::kNone));
    }
  }
  FetchSession::Options options = {.device = way.device,
                                   .pd = options_.pd != nullptr ? options_.pd : own_pd_.get(),
                                   .server = way.server,
                                   .keys = options_.keys,
                                   .wall = options_.wall,
                                   .idle = options_.idle};
  if (options_.ways.size() > 1) options.connect_timeout_ns = kConnectNs;
  GANNET_ASSIGN_OR_RETURN(session_, FetchSession::Begin(options, now));
  return absl::OkStatus();
}

absl::Status WalkSession::Make(Memory which, uint64_t bytes) {
  RegisteredBuffer& memory = memories_[static_cast<size_t>(which)];
  memory.mr.reset();  // before its memory
  GANNET_ASSIGN_OR_RETURN(memory, RegisteredBuffer::Create(
                                      options_.pd != nullptr ? options_.pd : own_pd_.get(), bytes));
  return absl::OkStatus();
}

void WalkSession::Poll(BootTime now) {
  if (std::exchange(handed_, false)) done_.clear();
  if (!status_.ok()) return;
  session_->Poll(now);
  for (const uint32_t place : session_->done()) Hand(place);
  if (!session_->status().ok()) return GoOn(now);
  if (!session_->ready()) return;
  lost_since_.reset();
  if (std::exchange(goes_on_, false)) {
    PostAgain();
  } else {
    view_ = session_->view();
  }
  handed_ = status_.ok();
}

void WalkSession::Hand(uint32_t place) {
  done_.push_back(reads_[place].tag);
  reads_[place].bytes = 0;
  --in_flight_;
}

// The former session waits until nothing of it is in flight.
void WalkSession::GoOn(BootTime now) {
  if (!lost_since_) lost_since_ = now;
  absl::Status why = session_->status();
  goes_on_ = goes_on_ || view_.incarnation != 0;
  session_.reset();
  const size_t ways = options_.ways.size();
  for (size_t tries = 1; tries < ways && now - *lost_since_ <= kLostNsMax; ++tries) {
    way_ = (way_ + 1) % ways;
    const absl::Status connects = Connect(now);
    LOG(INFO) << "the walk through a server's items goes on over another rail, to "
              << options_.ways[way_].server.ToString() << ": " << why.message();
    if (connects.ok()) return;
    why = connects;
  }
  status_ = std::move(why);
}

void WalkSession::PostAgain() {
  if (session_->view() != view_) {
    status_ = absl::AbortedError(
        "the primary's index has changed while the walk went to another rail: join again");
    return;
  }
  for (uint32_t place = 0; place < kReadsMax; ++place) {
    const Read& read = reads_[place];
    if (read.bytes == 0) continue;
    session_->AddRead(place, read.offset, read.bytes, data(read.which) + read.at,
                      At(read.which).lkey());
  }
  session_->Post();
}

void WalkSession::AddRead(uint32_t tag, uint64_t offset, uint32_t bytes, Memory which,
                          uint64_t at) {
  GANNET_CHECK(bytes > 0 && room() > 0, "room for a READ");
  const auto place =
      static_cast<uint32_t>(std::ranges::find(reads_, 0u, &Read::bytes) - reads_.begin());
  reads_[place] = {.tag = tag, .offset = offset, .bytes = bytes, .which = which, .at = at};
  ++in_flight_;
  session_->AddRead(place, offset, bytes, data(which) + at, At(which).lkey());
}

void WalkSession::Arm() {
  if (session_ != nullptr) session_->Arm();
}

std::array<int, 2> WalkSession::fds() const {
  return session_ == nullptr ? std::array<int, 2>{-1, -1} : session_->fds();
}

}  // namespace gannet
