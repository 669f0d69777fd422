// A walk over one server, for a thread that may block. It has a session of its own, posts the READs
// that a WalkDriver plans at the pace of ReadPace, waits for all of them, and goes on. It asks for
// the map and for heats over the same session, one request at a time. An item that has expired by
// the server's clock is not shown.

#include "client/walk/region_walk.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/routing/endpoint.h"
#include "client/walk/hot_places.h"
#include "common/auth/auth_file.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/layout/item_lease_header.h"
#include "common/layout/stub.h"
#include "common/protocol/item_leases_reply.h"
#include "common/protocol/limits.h"
#include "common/protocol/message.h"
#include "common/rdma/address.h"
#include "common/rdma/device.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

int64_t ToNs(std::chrono::milliseconds time) { return time.count() * kNsPerMs; }

}  // namespace

absl::StatusOr<std::unique_ptr<RegionWalk>> RegionWalk::Connect(const std::string& endpoint,
                                                                const Options& options,
                                                                const WalkOptions& walk,
                                                                const ClientClock& clock) {
  if (ListDevices().empty()) return NoDeviceStatus();
  GANNET_ASSIGN_OR_RETURN(const Endpoint parsed, ParseEndpoint(endpoint));
  GANNET_ASSIGN_OR_RETURN(std::vector<SocketAddress> addresses, ResolveEndpoint(parsed));
  GANNET_ASSIGN_OR_RETURN(std::shared_ptr<AuthFile> auth_file,
                          AuthFile::OpenIfNamed(options.auth_file));
  std::unique_ptr<RegionWalk> made(new RegionWalk(ToNs(options.deadline), walk, clock));
  made->session_ = std::make_unique<ClientSession>(
      ClientSession::Options{.endpoint = endpoint,
                             .addresses = std::move(addresses),
                             .group = parsed.group,
                             .device = options.device,
                             .ops = kReadsMax,
                             .reads_wanted = kReadsMax,
                             .connect_timeout_ns = ToNs(options.connect_timeout),
                             .reconnect = false,
                             .clock = clock,
                             .auth_file = std::move(auth_file),
                             .log = nullptr},
      made.get());
  // Without a map, a group that has ever closed a partition would tell it of no lease.
  made->session_->SetMapRevision(std::numeric_limits<uint64_t>::max());
  GANNET_RETURN_IF_ERROR(made->WaitUntilReady(ToNs(options.connect_timeout)));
  GANNET_RETURN_IF_ERROR(made->TakeBuffers());
  return made;
}

RegionWalk::~RegionWalk() {
  if (session_ == nullptr || !session_->attempts().was_connected()) return;
  for (const LentBuffer& buffer : buffers_) session_->memory().items.Return(buffer);
}

absl::Status RegionWalk::WaitUntilReady(int64_t connect_timeout_ns) {
  const int64_t until_ns = clock_.MonotonicNs() + connect_timeout_ns;
  while (!session_->ready()) {
    if (session_->dead() ||
        (session_->attempts().unreachable() && !session_->attempts().status().ok())) {
      return session_->attempts().status();
    }
    if (clock_.MonotonicNs() >= until_ns) {
      return absl::UnavailableError(absl::StrCat(session_->endpoint(), ": no connection in time"));
    }
    Poll();
    if (!session_->ready()) Sleep(kSleepNsMax);
  }
  return absl::OkStatus();
}

absl::Status RegionWalk::TakeBuffers() {
  RegisteredPool& pool = session_->memory().items;
  for (uint32_t i = 0; i < kReadsMax; ++i) {
    const LentBuffer buffer = pool.Take(kBufferBytes);
    if (buffer.data == nullptr) {
      return pool.error().ok() ? absl::ResourceExhaustedError("no memory to READ into")
                               : pool.error();
    }
    buffers_.push_back(buffer);
  }
  return absl::OkStatus();
}

absl::Status RegionWalk::Walk(absl::FunctionRef<bool(const WalkedItem&)> show) {
  progress_ = {};
  walk_.emplace(&session_->terms().view);
  return GoOn([show](const WalkedItem& item, uint64_t, uint64_t) { return show(item); },
              [] { return true; });
}

absl::StatusOr<uint64_t> RegionWalk::WalkPart(const WalkPartOptions& part,
                                              absl::FunctionRef<void(const WalkedItem&)> show,
                                              int bits_max) {
  progress_ = {};
  // Some bits more than there are homes, so that few keys are shown by two parts.
  constexpr int kBitsWithinHome = 6;
  const uint64_t homes =
      std::max(session_->terms().view.index.homes, session_->terms().view.next.homes);
  const int bits = std::min(static_cast<int>(std::bit_width(homes)) + kBitsWithinHome, bits_max);
  const uint64_t step = uint64_t{1} << (64 - bits);
  IndexWalk& walk = walk_.emplace(&session_->terms().view, nullptr, part.position);
  uint64_t next = 0;
  const auto cut = [&] {
    const bool enough = progress_.items >= part.items_min || progress_.reads >= part.reads_max;
    if (next == 0 && enough && walk.step() == IndexWalk::Step::kReadBuckets) {
      next = walk.CutOff(step);
    }
    return true;
  };
  const auto show_all = [show](const WalkedItem& item, uint64_t, uint64_t) {
    show(item);
    return true;
  };
  GANNET_RETURN_IF_ERROR(GoOn(show_all, cut));
  return next & ~(step - 1);
}

absl::Status RegionWalk::GoOn(ShowAt show, absl::FunctionRef<bool()> between) {
  IndexWalk& walk = *walk_;
  WalkDriver& driver =
      driver_.emplace(&walk, static_cast<WalkReader*>(this), kReadsMax, clock_.MonotonicNs());
  show_ = &show;
  for (;;) {
    const bool may_end = driver.between() && walk.step() != IndexWalk::Step::kDone;
    if (may_end && !between()) return absl::OkStatus();
    switch (driver.Step()) {
      case WalkDriver::Outcome::kGoesOn:
      case WalkDriver::Outcome::kWaits:
        break;
      case WalkDriver::Outcome::kDone:
      case WalkDriver::Outcome::kStopped:
        return absl::OkStatus();
      case WalkDriver::Outcome::kFailed:
        return failed_;
      case WalkDriver::Outcome::kChangesTooFast:
        return absl::AbortedError(
            absl::StrCat(session_->endpoint(), ": the index changes too fast for a walk"));
      case WalkDriver::Outcome::kUnknownSlot:
        return absl::UnimplementedError(
            absl::StrCat(session_->endpoint(),
                         " has items of a kind that only newer clients know: upgrade this client"));
    }
    if (driver.between() && driver.StuckNs(clock_.MonotonicNs()) > deadline_ns_) {
      return absl::DeadlineExceededError(absl::StrCat(
          session_->endpoint(), ": what the walk READs changes too fast; try a longer deadline"));
    }
  }
}

bool RegionWalk::BeginReads(std::span<const PlacedRead> reads) {
  failed_ = Read(reads);
  if (!failed_.ok()) return false;
  for (const PlacedRead& it : reads) driver_->OnRead({&it.place, 1});
  return true;
}

bool RegionWalk::WantIndex() {
  session_->WantIndex();
  failed_ = WaitFor(kNsPerMs);
  return failed_.ok();
}

WalkReader::Taken RegionWalk::OnItem(size_t i, const IndexWalk::Item& item) {
  if (map_ != nullptr && !map_->Shows(item.key)) return Taken::kYes;
  const ItemHeader& header = item.header;
  const Expiry expiry = header.expiry();
  ItemInfo info{header.version, header.flags, expiry.ms(), header.value_bytes};
  if (!expiry.never()) {
    const ServerTimeBound& time = session_->heartbeats().server_time();
    if (time.SurelyPast(expiry.time(), posted_ns_)) return Taken::kYes;
    info.ttl_left = std::chrono::milliseconds(time.LeftMs(expiry.time(), posted_ns_));
  }
  ++progress_.items;
  const Slot slot = walk_->items()[i];
  const bool goes_on = (*show_)(
      {.key = item.key,
       .value = item.value,
       .info = info,
       .block_bytes = static_cast<uint32_t>(SizeClassBytes(BlockClass(slot, item.key.size())))},
      slot.offset(), header.commit);
  return goes_on ? Taken::kYes : Taken::kStop;
}

// Posts at most kReadsMax READs and waits for them.
absl::Status RegionWalk::Read(std::span<const PlacedRead> reads,
                              std::optional<Elsewhere> elsewhere) {
  const auto n = static_cast<uint32_t>(reads.size());
  GANNET_RETURN_IF_ERROR(WaitFor(pace_.WaitNs(n, clock_.MonotonicNs())));
  posted_ns_ = clock_.MonotonicNs();
  for (const auto& [place, planned] : reads) {
    if (!session_->ready()) return session_->attempts().status();
    const LentBuffer& to = buffers_[place];
    const QueuedRead read{to.data, planned.offset, place, planned.bytes, to.keys};
    if (elsewhere) {
      if (!session_->sends().CanSend()) return absl::InternalError("no room for a READ");
      session_->sends().SendReadOf(elsewhere->address, elsewhere->rkey, read);
    } else {
      session_->sends().QueueRead(read);
    }
    ++reading_;
    progress_.read_bytes += planned.bytes;
  }
  progress_.reads += n;
  for (uint32_t polls = 0; reading_ > 0; ++polls) {
    Poll();
    if (!session_->ready()) return session_->attempts().status();
    if (session_->heartbeats().map_is_old() && map_ != nullptr)
      GANNET_RETURN_IF_ERROR(map_->OnOldMap());
    constexpr uint32_t kPollsBeforeSleep = 64;
    if (reading_ > 0 && polls > kPollsBeforeSleep) Sleep(kSleepNsMax);
  }
  pace_.Took(n, clock_.MonotonicNs() - posted_ns_);
  return session_->ready() ? absl::OkStatus() : session_->attempts().status();
}

absl::Status RegionWalk::ReadOnce(uint32_t bytes) {
  const PlacedRead read{.place = 0, .read = {.offset = 0, .bytes = std::min(bytes, kBufferBytes)}};
  return Read({&read, 1});
}

int64_t RegionWalk::ServerClockAheadMs() const {
  const int64_t now_ns = clock_.MonotonicNs();
  const uint64_t lower_ms = session_->heartbeats().server_time().Lower(now_ns).ms();
  const uint64_t upper_ms = session_->heartbeats().server_time().Upper(now_ns).ms();
  return static_cast<int64_t>(std::midpoint(lower_ms, upper_ms)) -
         static_cast<int64_t>(clock_.Wall().ms());
}

absl::Status RegionWalk::WaitFor(int64_t ns) {
  if (ns <= 0) return absl::OkStatus();
  const int64_t until_ns = clock_.MonotonicNs() + ns;
  for (int64_t left_ns = ns; left_ns > 0; left_ns = until_ns - clock_.MonotonicNs()) {
    Sleep(std::min(left_ns, kSleepNsMax));
    Poll();
    if (!session_->ready()) return session_->attempts().status();
  }
  return absl::OkStatus();
}

void RegionWalk::Poll() {
  if (session_->Poll(clock_.MonotonicNs())) session_->Flush(/*may_wait=*/false);
}

// Sleeps until the session has something to do, at most for `ns_max`.
void RegionWalk::Sleep(int64_t ns_max) {
  if (session_->ready() && session_->waits().ExpectsCompletions()) session_->waits().Arm();
  const uint32_t reading = reading_;
  Poll();
  if (reading_ != reading) return;
  std::array<pollfd, 2 * ClientSession::kConnectionsMax + 1> fds;
  nfds_t n = 0;
  bool completions = false;
  session_->waits().ForEachFd([&](int fd, FdKind kind) {
    completions |= kind == FdKind::kCompletions;
    if (n < fds.size()) fds[n++] = {fd, POLLIN, 0};
  });
  const int64_t ns = std::min(session_->waits().IdleNs(clock_.MonotonicNs(), true), ns_max);
  const timespec time = {ns / kNsPerSecond, ns % kNsPerSecond};
  if (ppoll(fds.data(), n, &time, nullptr) > 0) {
    if (completions) session_->waits().TakeEvents();
    session_->waits().LookAtConnections();
  }
}

// Sends a request without key and value, and returns the value of the answer.
absl::StatusOr<std::string> RegionWalk::Ask(const RequestHeader& header) {
  if (!session_->ready()) return session_->attempts().status();
  if (!session_->requests().CanSend()) return absl::UnavailableError("no credit for a request");
  const int64_t now_ns = clock_.MonotonicNs();
  answer_.reset();
  session_->requests().Send({.header = header}, {.op = 0, .timeout_ns = deadline_ns_}, now_ns);
  while (!answer_) {
    Poll();
    if (!session_->ready()) return session_->attempts().status();
    if (clock_.MonotonicNs() - now_ns > deadline_ns_) {
      return absl::DeadlineExceededError(absl::StrCat(session_->endpoint(), ": no answer in time"));
    }
    if (!answer_) Sleep(kSleepNsMax);
  }
  if (answer_->status == ReplyStatus::kOk) return std::move(answer_->value);
  if (answer_->status == ReplyStatus::kNotFound) {
    return absl::NotFoundError(absl::StrCat(session_->endpoint(), ": the server has none"));
  }
  if (answer_->status == ReplyStatus::kUnimplemented) {
    return absl::UnimplementedError(
        absl::StrCat(session_->endpoint(), ": the server is older than this request"));
  }
  return absl::InternalError(absl::StrCat(session_->endpoint(), ": the server refused with status ",
                                          static_cast<int>(answer_->status)));
}

absl::StatusOr<std::string> RegionWalk::AskForMap(uint64_t position) {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kMap);
  header.list = {.position = position};
  return Ask(header);
}

WalkProgress RegionWalk::progress() const {
  WalkProgress progress = progress_;
  if (walk_) {
    progress.retries = walk_->retries();
    progress.done = walk_->done();
  }
  return progress;
}

// Finds the keys that are used most.

namespace {

// This many places are looked at for each wanted key. Some places have no item any more, and two
// short items may share one.
constexpr size_t kPlacesPerKey = 4;
constexpr size_t kPlacesMin = 1024;

absl::Status Interrupted() { return absl::CancelledError("the walk was interrupted"); }

}  // namespace

absl::StatusOr<std::vector<HotKey>> RegionWalk::HotKeys(size_t count,
                                                        absl::FunctionRef<bool()> goes_on) {
  if (count == 0 || count > Walker::kHotKeysMax) {
    return absl::InvalidArgumentError(absl::StrCat("from 1 to ", Walker::kHotKeysMax, " hot keys"));
  }
  progress_ = {};
  GANNET_ASSIGN_OR_RETURN(const HeatsReply heats, AskForHeats());
  HotPlaces places(heats, std::max(kPlacesMin, count * kPlacesPerKey));
  const auto take_heats = [&](uint64_t first, std::span<const std::byte> piece) {
    places.Take(first, piece);
  };
  GANNET_RETURN_IF_ERROR(ReadPieces({heats.address, heats.rkey}, heats.bytes, goes_on, take_heats));
  places.Finish();
  if (places.empty()) return std::vector<HotKey>();
  GANNET_ASSIGN_OR_RETURN(const auto leases, ReadLeases());
  // The index says which items begin at these places now. The items prove themselves.
  std::map<std::string, HotKey, std::less<>> found;
  bool interrupted = false;
  const auto take = [&](const WalkedItem& item, uint64_t offset, uint64_t commit) {
    const std::optional<uint8_t> heat = places.HeatAt(offset);
    if (!heat) return true;
    HotKey& key = found[std::string(item.key)];
    key = {.key = std::string(item.key),
           .uses = std::max(key.uses, places.UsesOf(*heat)),
           .at_least = key.at_least || places.IsMost(*heat),
           .info = item.info,
           .block_bytes = item.block_bytes};
    if (leases) key.leased = leases->contains(commit);
    return true;
  };
  const auto still = [&] {
    interrupted = !goes_on();
    return !interrupted;
  };
  walk_.emplace(&session_->terms().view, &places);
  GANNET_RETURN_IF_ERROR(GoOn(take, still));
  if (interrupted) return Interrupted();
  std::vector<HotKey> keys;
  for (auto& [name, key] : found) keys.push_back(std::move(key));
  std::ranges::stable_sort(keys, std::ranges::greater{}, &HotKey::uses);
  keys.resize(std::min(keys.size(), count));
  return keys;
}

absl::StatusOr<HeatsReply> RegionWalk::AskForHeats() {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kHeats);
  GANNET_ASSIGN_OR_RETURN(const std::string answer, Ask(header));
  HeatsReply heats{};  // fields that an older server does not send stay 0
  std::memcpy(&heats, answer.data(), std::min(answer.size(), sizeof(heats)));
  if (heats.bytes == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(session_->endpoint(),
                     ": the server keeps no record of what is used: it evicts nothing, or could "
                     "not register the record. Start it with --on_full=evict"));
  }
  if (!HotPlaces::IsSane(heats, session_->grant().region_bytes)) {
    return absl::InternalError(absl::StrCat(session_->endpoint(), ": heats that cannot be"));
  }
  return heats;
}

absl::StatusOr<std::optional<std::unordered_set<uint64_t>>> RegionWalk::ReadLeases() {
  if ((session_->grant().features & kGrantItemLeases) == 0) return std::nullopt;
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kItemLeases);
  GANNET_ASSIGN_OR_RETURN(const std::string answer, Ask(header));
  const ItemLeasesReply leases = DecodeItemLeases(answer);
  if (leases.words == 0) return std::nullopt;
  std::unordered_set<uint64_t> words;
  const auto take = [&](uint64_t, std::span<const std::byte> piece) {
    for (size_t at = 0; at < piece.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, &piece[at], sizeof(word));
      if (word != 0) words.insert(word);
    }
  };
  const Elsewhere from = {leases.address + ItemLeaseBytes(0), leases.rkey};
  GANNET_RETURN_IF_ERROR(ReadPieces(
      from, leases.words * sizeof(uint64_t), [] { return true; }, take));
  return words;
}

absl::Status RegionWalk::ReadPieces(const Elsewhere& from, uint64_t bytes,
                                    absl::FunctionRef<bool()> goes_on, TakePiece take) {
  for (uint64_t at = 0; at < bytes;) {
    if (!goes_on()) return Interrupted();
    std::array<PlacedRead, kReadsMax> reads;
    uint32_t n = 0;
    const uint64_t first = at;
    for (; n < kReadsMax && at < bytes; ++n) {
      const auto piece = static_cast<uint32_t>(std::min<uint64_t>(bytes - at, kBufferBytes));
      reads[n] = {.place = n, .read = {.offset = at, .bytes = piece}};
      at += piece;
    }
    GANNET_RETURN_IF_ERROR(Read({reads.data(), n}, from));
    for (uint32_t i = 0; i < n; ++i) {
      take(first + uint64_t{i} * kBufferBytes, {buffer(i), reads[i].read.bytes});
    }
  }
  return absl::OkStatus();
}

}  // namespace gannet
