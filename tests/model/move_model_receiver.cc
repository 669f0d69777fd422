// The receiver's side of a move, and the transaction that ends it.
#include <algorithm>

#include "tests/model/move_model.h"

namespace gannet::model::move {

void MoveModel::ReceiverSteps(const State& state, const Emit& emit) const {
  const auto receiver = static_cast<uint8_t>(1 - state.maps[state.revision].owner);
  if (KnownTo(state, receiver).owner != receiver) {
    BeginStep(state, receiver, emit);
    LinkSteps(state, receiver, emit);
    HandOverSteps(state, receiver, emit);
  }
  TransactionSteps(state, emit);
}

// The receiver begins, or begins anew because its link broke or the partition was open in between.
void MoveModel::BeginStep(const State& state, uint8_t receiver, const Emit& emit) const {
  const Join& join = state.join;
  const Group& group = state.groups[receiver];
  const Map& known = KnownTo(state, receiver);
  if (state.closes_left == 0 && known.closed == 0) return;
  const bool has_all = join.ended != 0 && join.ended == known.closed;
  const bool under_way = join.link == Link::kBegun || (join.link == Link::kOpen && join.ended == 0);
  const bool may_have_won = rules_.keeps_until_settled ? join.sent == group.knows : join.sent == 0;
  if (rules_.keeps_until_settled ? has_all || under_way || may_have_won
                                 : under_way || (has_all && may_have_won)) {
    return;
  }
  State next = state;
  next.join = {};
  next.join.link = Link::kBegun;
  if (rules_.begins_empty) {
    Item& item = next.groups[receiver].now.item;
    item = {.present = 0, .version = item.version, .effects = {}};
  }
  emit("the receiver begins, empty", next);
}

void MoveModel::LinkSteps(const State& state, uint8_t receiver, const Emit& emit) const {
  const auto giver = static_cast<uint8_t>(1 - receiver);
  const Join& join = state.join;
  const Group& from = state.groups[giver];
  State next = state;
  Copy& to = next.groups[receiver].now;
  // Takes the item as it is at the giver, where it is committed.
  const auto take = [&] {
    to.item = from.committed.item;
    to.counter = std::max(to.counter, to.item.present ? to.item.version : uint8_t{0});
  };
  if (join.link == Link::kBegun) {
    next.join.link = Link::kOpen;
    next.join.since = from.now.counter;
    emit("the stream is opened", next);
    next = state;
  }
  const bool may_walk = join.link == Link::kOpen
                            ? from.committed.counter >= join.since
                            : join.link == Link::kBegun && !rules_.streams_before_walk;
  if (may_walk && !join.walked) {
    next.join.walked = 1;
    if (!join.brought && !to.item.present) take();
    emit("the receiver walks", next);
    next = state;
  }
  if (join.link != Link::kOpen && join.link != Link::kToDeposed) return;
  // What the giver ended last, of what the receiver may count. All records of the partition are
  // committed before, so the stream brings these first. One that was deposed after that had brought
  // them, too. Nobody has served the partition since.
  const bool is_deposed = join.link == Link::kToDeposed;
  const uint8_t closed = state.maps[state.revision].closed;
  const bool has_last = from.committed.counter >= from.last || !rules_.committed_first;
  uint8_t ended = has_last ? from.ended : uint8_t{0};
  if (is_deposed) ended = rules_.ends_under_lease ? join.deposed : closed;
  const bool told = ended != 0 && ended == closed;
  const bool brings = !is_deposed || (told && rules_.ends_under_lease);
  const bool stream_has_more = brings && from.committed.item.version > join.since &&
                               (from.committed.item.version != to.item.version || !join.brought);
  if (stream_has_more && join.ended == 0) {
    next.join.brought = 1;
    take();
    emit("the stream brings the key", next);
    next = state;
  }
  if (told && join.walked && join.ended != ended && !stream_has_more) {
    next.join.ended = ended;
    if (rules_.counter_goes_along) to.counter = std::max(to.counter, from.committed.counter);
    emit("the giver tells the receiver that it has ended", next);
  }
}

void MoveModel::HandOverSteps(const State& state, uint8_t receiver, const Emit& emit) const {
  const auto giver = static_cast<uint8_t>(1 - receiver);
  const Join& join = state.join;
  const Map& map = KnownTo(state, receiver);
  const Group& group = state.groups[receiver];
  State next = state;
  const bool knows_newest = group.knows == state.revision;
  if (knows_newest && map.closed == 0 && state.closes_left > 0 && join.link == Link::kOpen &&
      join.walked) {
    --next.closes_left;
    Change(&next, giver, /*closed=*/true);
    emit("the receiver has the partition closed", next);
    next = state;
  }
  const uint8_t closed = KnownTo(state, giver).owner == giver ? KnownTo(state, giver).closed : 0;
  const uint8_t lease = state.reader.leases[giver];
  const bool older_lease = lease != 0 && lease < closed;
  if (closed != 0 && join.ended == closed && join.leases_over != closed &&
      !(rules_.waits_for_leases && older_lease)) {
    next.join.leases_over = closed;
    emit("the giver tells the receiver that no older lease is left", next);
    next = state;
  }
  const bool has_all = rules_.names_close ? join.ended == map.closed : join.ended != 0;
  const bool leases_over =
      rules_.names_close ? join.leases_over == map.closed : join.leases_over != 0;
  const bool committed = group.committed == group.now || !rules_.receiver_commits_first;
  const bool may_ask = state.transaction.sent == 0 && (join.sent == 0 || rules_.asks_again);
  if (map.closed != 0 && has_all && leases_over && committed && may_ask) {
    next.join.sent = group.knows;
    next.transaction = {
        .sent = 1, .group = receiver, .revision = group.knows, .epoch = group.epoch};
    emit("the receiver asks to be the owner", next);
  }
}

void MoveModel::TransactionSteps(const State& state, const Emit& emit) const {
  const Transaction& asked = state.transaction;
  if (asked.sent == 0) return;
  State next = state;
  next.transaction = {};
  emit("a transaction is lost", next);
  const bool same_map = asked.revision == state.revision || !rules_.compares_map;
  const bool same_epoch = asked.epoch == state.groups[asked.group].epoch || !rules_.compares_epoch;
  if (same_map && same_epoch) Change(&next, asked.group, /*closed=*/false);
  emit("the register executes a transaction", next);
}

}  // namespace gannet::model::move
