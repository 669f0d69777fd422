// GETs that are answered from copies. The time of this Poll was read after all of them were begun,
// and after all writes of their keys were over that were begun before, so a copy that is right by
// then is a right answer.

#include "client/engine/near_gets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "client/engine/caller_memory.h"
#include "common/base/copy_bytes.h"

namespace gannet {
namespace {

// The writes that a fresh GET must not overtake: those that are under way, and fresh ones that were
// begun before it. Fresh ones are known by six bits of their hashes, so one of another key may be
// taken for one of the GET's. That GET is READ.
class FreshWrites {
 public:
  explicit FreshWrites(const OpTable& ops) : ops_(ops), any_(ops.order().HasWrites()) {}

  // A fresh operation comes that is no GET.
  void Note(const Op& op) {
    if (!IsWrite(op.request.type)) return;
    bits_ |= BitOf(op);
    any_ = true;
  }
  // Returns whether one of them may be of this operation's key.
  bool MayBeOf(const Op& op) const { return any_ && MayBeOfKey(op); }

 private:
  static uint64_t BitOf(const Op& op) { return uint64_t{1} << (op.hash.value() % 64); }
  [[gnu::noinline]] bool MayBeOfKey(const Op& op) const {
    return (bits_ & BitOf(op)) != 0 || ops_.order().HasWrite(op.hash.value());
  }

  const OpTable& ops_;
  bool any_;
  uint64_t bits_ = 0;
};

ptrdiff_t BytesBetween(const Completion* begin, const Completion* end) {
  return reinterpret_cast<const char*>(end) - reinterpret_cast<const char*>(begin);
}

}  // namespace

// Local copies of what the loop changes stay in registers.
bool NearGets::AnswerFresh() {
  if (ops_.fresh().empty()) return false;
  const int64_t now_ns = ops_.now_ns();
  HitReports reports = reports_;
  FreshWrites writes(ops_);
  EngineServer* server = nullptr;
  bool holds = false;
  const Completion* first = reports.end();
  ops_.fresh().TakeOut([&](Op* const fresh) {
    Op& op = *fresh;
    const OpType type = op.request.type;
    if (type != OpType::kGet && type != OpType::kGetInto) [[unlikely]] {
      writes.Note(op);
      return false;
    }
    if (op.server != server) {
      if (server != nullptr)
        CountAnswersIn(*server, BytesBetween(std::exchange(first, reports.end()), reports.end()),
                       now_ns);
      server = op.server;
      holds = Holds(*server, now_ns);
    }
    if (!holds) return false;
    ItemCopies::Copy* const copy =
        server->near_cache->Find(*server->session, op.hash, op.key(), now_ns);
    if (copy == nullptr || writes.MayBeOf(op)) [[unlikely]]
      return false;
    if (reports.full() || type != OpType::kGet) [[unlikely]]
      return Finish(*server, op, *copy);
    Report(reports, op, *copy);
    return true;
  });
  if (server != nullptr) CountAnswersIn(*server, BytesBetween(first, reports.end()), now_ns);
  reports_ = reports;
  return MayPause() && ops_.not_free() == ops_.finished().size();
}

// A Poll of the sessions costs some times what an answer costs.
inline bool NearGets::MayPause() {
  if (ops_.now_ns() < pause_end_ns_) return true;
  pause_end_ns_ = ops_.now_ns() + kPauseNsMax;
  return false;
}

// Tells the caller of Poll at once, as OrdinaryGets::Report does.
inline void NearGets::Report(HitReports& reports, Op& op, ItemCopies::Copy& copy) {
  const ItemInfo info = op.server->MakeItemInfo(copy.header, ops_.now_ns());
  Completion& done = reports.Next();
  done = {.user_data = op.request.user_data, .found = true, .info = info};
  done.cost.from_near_cache = true;
  CopyValueBytes(op.request.out.data(), copy.value.data(),
                 std::min<size_t>(op.request.out.size(), copy.value.size()));
  CountUse(*op.server, copy);
  ops_.Free(op);
}

[[gnu::noinline]] void NearGets::TellUses(EngineServer& server, ItemCopies::Copy& copy) {
  if (server.touches != nullptr) server.touches->Used(copy.slot, copy.uses);
  copy.uses = 0;
}

// Tells of it by NextFinished. Returns false if the value cannot go where it should.
bool NearGets::Finish(EngineServer& server, Op& op, ItemCopies::Copy& copy) {
  std::string_view value = copy.value;
  if (op.request.type == OpType::kGetInto) {
    if (!HasCpuAddresses(op.request.memory)) return false;
  } else if (!Keep(op, copy, &value)) {
    return false;
  }
  CountUse(server, copy);
  LookForEnd(server, sizeof(Completion), ops_.now_ns());  // FinishHit counts the hit
  op.done.cost.from_near_cache = true;
  lookups_.FinishHit(op, server.MakeItemInfo(copy.header, ops_.now_ns()), value);
  return true;
}

// Copies the value to the operation's own memory: the copy may be gone when the caller takes it.
// Returns false if there is no buffer for it now.
bool NearGets::Keep(Op& op, const ItemCopies::Copy& copy, std::string_view* value) {
  const auto bytes = static_cast<uint32_t>(copy.value.size());
  std::byte* const kept =
      bytes <= OpBuffers::kSmallItemBytes ? op.buffers->item : op.BorrowItem(bytes);
  if (kept == nullptr) return false;
  std::memcpy(kept, copy.value.data(), bytes);
  *value = {reinterpret_cast<const char*>(kept), bytes};
  return true;
}

bool NearGets::Start(EngineServer& server, Op& op) {
  NearCache& near_cache = *server.near_cache;
  near_cache.OnGetInVain(*server.session, op.hash, op.key(), ops_.now_ns());
  if (op.request.type == OpType::kGetInto) {
    lookups_.StartInto(op);
    return true;
  }
  if (!near_cache.Samples()) return false;
  lookups_.Start(op, server.cache.Find(op.hash, op.place));
  return true;
}

}  // namespace gannet
