#include "tests/model/lost_register_model.h"

#include <algorithm>
#include <cstring>

namespace gannet::model {
namespace {

using State = LostRegisterModel::State;
using Node = LostRegisterModel::Node;
using Register = LostRegisterModel::Register;

constexpr uint8_t kEpochsMax = 2;

bool Has(uint8_t mask, int n) { return (mask >> n & 1) != 0; }
uint8_t Bit(int n) { return static_cast<uint8_t>(1 << n); }
bool Same(const Register& a, const Register& b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }
// Whether q follows p, in p's epoch, and answers it.
bool Follows(const State& state, int q, int p) {
  const Node& node = state.nodes[q];
  return node.alive != 0 && node.role == LostRegisterModel::kFollows && node.fenced == 0 &&
         node.known.epoch == state.nodes[p].known.epoch && node.known.primary == p;
}
// Whether p has its lease.
bool HasLease(const State& state, int p) {
  const Node& primary = state.nodes[p];
  if (primary.alive == 0 || primary.role != LostRegisterModel::kLeads) return false;
  for (int q = 0; q < LostRegisterModel::kNodes; ++q) {
    if (q != p && Has(primary.known.in_sync, q) && !Follows(state, q, p)) return false;
  }
  return true;
}
bool Serves(const State& state, int p) {
  return HasLease(state, p) && state.nodes[p].open != 0 && state.nodes[p].naming == 0;
}
bool HasItems(const Node& node) {
  return node.alive != 0 && node.role != LostRegisterModel::kWaits;
}
// A process executes itself again, and has nothing.
void Begin(Node* node) {
  const uint8_t note = node->note;  // it stays
  *node = {.alive = 1, .process = static_cast<uint8_t>(node->process + 1), .note = note};
}

}  // namespace

std::vector<State> LostRegisterModel::Initial() const {
  State state{};
  state.now = {.present = 1,
               .revision = 1,
               .epoch = 1,
               .primary = 0,
               .in_sync = static_cast<uint8_t>(Bit(nodes_) - 1)};
  for (int n = 0; n < kNodes; ++n) {
    Node& node = state.nodes[n];
    if (n >= nodes_) {
      node.process = 2;  // it never lives
      continue;
    }
    node.alive = node.process = 1;
    node.role = kFollows;
    node.known = state.now;
  }
  state.nodes[0].role = kLeads;
  state.nodes[0].open = 1;
  return {state};
}

void LostRegisterModel::Next(const State& state, const Emit& emit) const {
  for (int n = 0; n < kNodes; ++n) {
    const Node& node = state.nodes[n];
    if (node.alive != 0 && node.role == kLeads) PrimarySteps(state, n, emit);
    if (node.alive != 0 && node.role == kFollows) BackupSteps(state, n, emit);
    LifeSteps(state, n, emit);
    LossSteps(state, n, emit);
    Learn(state, n, state.now, emit);
    if (state.lost != 0 && state.nodes[n].known.era == 0) Learn(state, n, state.last, emit);
  }
  RegisterSteps(state, emit);
}

void LostRegisterModel::PrimarySteps(const State& state, int p, const Emit& emit) const {
  const Node& primary = state.nodes[p];
  if (primary.open != 0 && state.written == 0) {
    State next = state;
    next.written = next.nodes[p].has = 1;
    emit("a primary records the write", next);
  }
  bool everywhere = primary.has != 0;
  for (int q = 0; q < kNodes; ++q) {
    if (q == p || !Has(primary.known.in_sync, q)) continue;
    everywhere = everywhere && state.nodes[q].has != 0;
    State next = state;
    if (Follows(state, q, p) && primary.has != 0 && state.nodes[q].has == 0) {
      next.nodes[q].has = 1;
      emit("the write arrives", next);
    }
    next = state;
    if (Follows(state, q, p) && !Has(primary.answered, q) &&
        (primary.saw_loss != 0 || !rules_.answers_are_new)) {
      next.nodes[p].answered |= Bit(q);
      emit("a beacon is answered", next);
    }
    if (primary.txn.under_way != 0) continue;
    next = state;
    Register wants = primary.known;
    ++wants.revision;
    wants.is_new = primary.known.era;
    wants.in_sync &= static_cast<uint8_t>(~Bit(q));
    next.nodes[p].txn = {.under_way = 1, .compares = primary.known, .wants = wants};
    emit("a primary wants a member removed", next);
    if (primary.known.epoch == kEpochsMax || primary.open == 0) continue;
    next = state;
    wants = primary.known;
    ++wants.revision;
    ++wants.epoch;
    wants.is_new = primary.known.era;
    wants.primary = static_cast<uint8_t>(q);
    wants.in_sync &= static_cast<uint8_t>(~Bit(p));
    next.nodes[p].txn = {.under_way = 1, .compares = primary.known, .wants = wants};
    next.nodes[p].naming = 1;
    emit("a primary names a successor", next);
  }
  if (Serves(state, p) && everywhere && state.acknowledged == 0) {
    State next = state;
    next.acknowledged = 1;
    emit("the write is acknowledged", next);
  }
  if (primary.open == 0 && HasLease(state, p) && (everywhere || primary.has == 0)) {
    State next = state;
    next.nodes[p].open = 1;
    if (state.acknowledged != 0 && primary.has == 0) next.broken = 1;
    emit("a primary takes clients", next);
  }
}

void LostRegisterModel::BackupSteps(const State& state, int b, const Emit& emit) const {
  const Node& backup = state.nodes[b];
  State next = state;
  if (backup.fenced == 0) {
    next.nodes[b].fenced = 1;
    emit("a backup fences its primary", next);
    return;
  }
  const int p = backup.known.primary;
  const Node& primary = state.nodes[p];
  if (p != b && primary.alive != 0 && primary.role == kLeads && primary.open == 0 &&
      primary.known.epoch == backup.known.epoch) {
    next.nodes[b].fenced = 0;
    next.nodes[b].has = primary.has;
    emit("a survivor connects", next);
  }
  if (backup.txn.under_way != 0 || backup.known.epoch == kEpochsMax) return;
  next = state;
  Register wants = backup.known;
  ++wants.revision;
  ++wants.epoch;
  wants.is_new = backup.known.era;
  wants.in_sync &= static_cast<uint8_t>(~Bit(p));
  wants.primary = static_cast<uint8_t>(b);
  next.nodes[b].txn = {.under_way = 1, .compares = backup.known, .wants = wants};
  emit("a backup wants to take over", next);
}

void LostRegisterModel::LifeSteps(const State& state, int n, const Emit& emit) const {
  const Node& node = state.nodes[n];
  State next = state;
  if (node.alive != 0 && node.process == 1) {
    next.nodes[n].alive = 0;
    next.died = 1;
    emit("a process dies", next);
  }
  next = state;
  if (node.alive == 0 && node.process == 1) {
    Begin(&next.nodes[n]);
    emit("a process comes back", next);
  }
}

void LostRegisterModel::RegisterSteps(const State& state, const Emit& emit) const {
  for (int n = 0; n < kNodes; ++n) {
    const Txn& txn = state.nodes[n].txn;
    if (txn.under_way == 0) continue;
    State next = state;
    next.nodes[n].txn = {};
    if (!Same(txn.compares, state.now)) {
      emit("a transaction loses", next);
      continue;
    }
    next.now = txn.wants;
    emit("a transaction wins", next);
  }
  State next = state;
  if (state.lost == 0) {
    next.lost = 1;
    next.last = state.now;
    next.now = {};
    if (loss_ == Loss::kRestored) next.now = Initial().front().now;
    next.now.era = 1;
    emit("the register is lost", next);
  }
  const bool all_said = std::ranges::all_of(
      state.nodes, [](const Node& node) { return !HasItems(node) || node.note != 0; });
  if (state.lost != 0 && state.now.present == 0 && all_said) {
    next = state;
    next.made = 1;
    next.now.present = next.now.is_new = 1;
    next.now.revision = 1;
    next.now.history = 1;
    emit("an operator makes the group", next);
  }
}

void LostRegisterModel::LossSteps(const State& state, int n, const Emit& emit) const {
  const Node& node = state.nodes[n];
  if (state.lost == 0 || node.alive == 0) return;
  const bool unfounded = state.now.present != 0 && state.now.epoch == 0;
  State next = state;
  if (node.role == kWaits) {
    const bool note = std::ranges::any_of(state.nodes, [](const Node& it) { return it.note != 0; });
    if (!unfounded || (note && rules_.notes_matter)) return;
    Node& founder = next.nodes[n];
    next.now.epoch = 1;
    ++next.now.revision;
    next.now.primary = static_cast<uint8_t>(n);
    next.now.in_sync = Bit(n);
    founder.role = kLeads;
    founder.open = 1;
    founder.known = next.now;
    if (std::ranges::any_of(state.nodes, HasItems)) next.broken = 2;
    return emit("a process founds an empty group", next);
  }
  if (node.known.era == 0 && node.note == 0 && !Believes(node, state.now)) {
    next.nodes[n].note = next.nodes[n].saw_loss = 1;
    emit("a process sees that the register is lost", next);
  }
  if (node.role != kLeads || !unfounded || node.saw_loss == 0 || node.known.era != 0) return;
  const uint8_t others = node.known.in_sync & static_cast<uint8_t>(~Bit(n));
  if (rules_.adopts_when_answered && (node.answered & others) != others) return;
  if (rules_.naming_matters && node.naming != 0) return;
  next = state;
  next.now = node.known;
  next.now.era = next.now.is_new = 1;
  next.now.revision = static_cast<uint8_t>(state.now.revision + 1);
  next.nodes[n].known = next.now;
  next.nodes[n].naming = next.nodes[n].note = 0;
  next.nodes[n].txn = {};
  emit("a primary adopts the register", next);
}

bool LostRegisterModel::Believes(const Node& node, const Register& now) const {
  if (now.present == 0) return false;
  if (now.epoch != node.known.epoch) return now.epoch > node.known.epoch || !rules_.epochs_matter;
  if (now.primary != node.known.primary || now.history != node.known.history) return false;
  return now.era == node.known.era || now.is_new != 0 || !rules_.restored_is_doubted;
}

void LostRegisterModel::Learn(const State& state, int n, const Register& news,
                              const Emit& emit) const {
  const Node& node = state.nodes[n];
  if (!HasItems(node) || Same(node.known, news) || !Believes(node, news)) return;
  if (news.era == node.known.era && news.revision < node.known.revision) return;
  State next = state;
  Node& mine = next.nodes[n];
  const bool next_epoch = news.epoch != node.known.epoch;
  mine.known = news;
  mine.naming = 0;
  if (news.era != 0) mine.note = 0;  // otherwise it is lost still
  if (news.primary == n) {
    if (mine.role != kLeads || next_epoch) mine.open = 0;
    mine.role = kLeads;
  } else if (mine.role == kLeads) {
    Begin(&mine);
  } else if (!Has(news.in_sync, n)) {
    mine.role = kOut;
    mine.fenced = 1;
  } else {
    mine.role = kFollows;
    if (next_epoch) mine.fenced = 1;
  }
  emit("a process learns the register", next);
}

const char* LostRegisterModel::Broken(const State& state) const {
  if (state.broken == 1) return "whoever takes clients lacks what was acknowledged";
  if (state.broken == 2) return "an empty group is founded beside one that lives";
  const bool somebody_has = std::ranges::any_of(
      state.nodes, [](const Node& node) { return node.alive != 0 && node.has != 0; });
  if (state.acknowledged != 0 && state.died == 0 && !somebody_has) {
    return "the last copy is thrown away";
  }
  int serving = 0;
  for (int p = 0; p < kNodes; ++p) {
    serving += Serves(state, p) ? 1 : 0;
    // If nobody lives who has items, an empty group may be founded.
    const bool is_first = state.nodes[p].known.history == 0;
    if (Serves(state, p) && state.acknowledged != 0 && state.nodes[p].has == 0 && is_first) {
      return "who serves lacks what was acknowledged";
    }
  }
  return serving > 1 ? "two primaries serve" : nullptr;
}

}  // namespace gannet::model
