#include "tests/model/item_lease_model.h"

#include <algorithm>

namespace gannet::model::item_lease {
namespace {

using State = ItemLeaseModel::State;
using Key = ItemLeaseModel::Key;
using Client = ItemLeaseModel::Client;
using Word = ItemLeaseModel::Word;
using Mark = ItemLeaseModel::Mark;
using Half = ItemLeaseModel::Half;
using Noted = ItemLeaseModel::Noted;
using Reading = ItemLeaseModel::Reading;

uint8_t Less(uint8_t left) { return left > 0 ? left - 1 : 0; }

}  // namespace

std::vector<State> ItemLeaseModel::Initial() const {
  State state{};
  for (int k = 0; k < scenario_.keys; ++k) state.keys[k].there = 1;
  return {state};
}

void ItemLeaseModel::Next(const State& state, const Emit& emit) const {
  TimeSteps(state, emit);
  HeaderSteps(state, emit);
  for (int k = 0; k < scenario_.keys; ++k) {
    LeaseSteps(state, k, emit);
    EndingSteps(state, k, emit);
    WriteSteps(state, k, emit);
  }
  if (scenario_.flush) FlushSteps(state, emit);
  for (int c = 0; c < scenario_.clients; ++c) ClientSteps(state, c, emit);
}

void ItemLeaseModel::TimeSteps(const State& state, const Emit& emit) const {
  State next = state;
  next.end = Less(next.end);
  next.flush_left = Less(next.flush_left);
  for (int k = 0; k < scenario_.keys; ++k) {
    Key& key = next.keys[k];
    key.until = Less(key.until);
    if (key.expiry == 1) Expire(&next, k);
    key.expiry = Less(key.expiry);
  }
  if (!rules_.clock_never_jumps && !state.jumped) {
    // What clients know of the clock says nothing of the jump.
    State jumped = next;
    jumped.jumped = 1;
    emit("the server's clock jumps ahead", jumped);
  }
  for (Client& client : next.clients) client.end = Less(client.end);
  emit("time passes", next);
}

void ItemLeaseModel::Outdate(State* state, int k, Word now) {
  for (Client& client : state->clients) {
    for (Word* word : {&client.words[k], &client.samples[k]}) {
      if (*word == Word::kRight) *word = now;
    }
  }
}

void ItemLeaseModel::Expire(State* state, int k) {
  Key& key = state->keys[k];
  key.there = 0;
  if ((key.here || key.old_place == Word::kRight) && key.old_place != Word::kStale) {
    key.old_place = Word::kExpired;
  }
  key.here = 0;
  Outdate(state, k, Word::kExpired);
}

void ItemLeaseModel::HeaderSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (!rules_.renews_in_one_step) return RenewalSteps(state, emit);
  if (state.end < scenario_.lease || state.grows) {
    next.end = scenario_.lease;
    if (state.grows) GrowGeneration(&next);
    emit("the server renews the end", next);
  }
  if (rules_.end_never_decreases || state.end <= 1) return;
  next = state;
  next.end = 1;
  emit("the end is put back, to an item's expiry", next);
}

// The weaker variant: the generation may grow between the two steps, and goes back.
void ItemLeaseModel::RenewalSteps(const State& state, const Emit& emit) const {
  State next = state;
  if (state.noted == Noted::kNothing) {
    next.noted = Noted::kPresent;
    return emit("who renews the end notes the generation", next);
  }
  next.noted = Noted::kNothing;
  if (state.noted == Noted::kOlder) return emit("an end is not renewed", next);
  next.end = scenario_.lease;
  for (Client& client : next.clients) {
    if (state.noted == Noted::kFormer) client.current = client.former;
    client.former = 0;
  }
  emit("the server renews the end", next);
}

void ItemLeaseModel::GrowGeneration(State* state) const {
  state->grows = 0;
  if (state->noted == Noted::kFormer) state->noted = Noted::kOlder;
  if (state->noted == Noted::kPresent) state->noted = Noted::kFormer;
  for (Client& client : state->clients) {
    client.former = rules_.renews_in_one_step ? 0 : client.current;
    client.current = 0;
    if (client.half == Half::kOther) client.half = Half::kOtherOutOfDate;
  }
}

void ItemLeaseModel::LeaseSteps(const State& state, int k, const Emit& emit) const {
  const Key& key = state.keys[k];
  State next = state;
  Key& changed = next.keys[k];
  const bool barred = key.mark != Mark::kNone && (rules_.bars || key.mark == Mark::kLeased);
  const bool held_back = key.waiting && rules_.no_grant_while_a_change_waits;
  if (key.there && !key.here && !barred && !held_back) {
    changed.here = 1;
    if (key.mark == Mark::kNone) changed.mark = Mark::kLeased;
    emit("an item is leased", next);
    next = state;
  }
  if (!scenario_.moves || !key.there) return;
  if (key.mark == Mark::kLeased && !key.here) {
    changed.here = 1;
    emit("the word of the new place is added", next);
    next = state;
  }
  // Nothing changed, so the generation need not grow: one slot for each key is enough.
  if (key.mark == Mark::kLeased && key.old_place == Word::kRight) {
    changed.old_place = Word::kNone;
    emit("the word of an old place gives way", next);
    next = state;
  }
  changed.here = 0;
  if (key.here && key.old_place != Word::kStale) changed.old_place = Word::kRight;
  // The weaker rule: the mark stays with the place.
  if (!rules_.mark_is_the_keys) changed.mark = Mark::kNone;
  if (key.here || !rules_.mark_is_the_keys) emit("the item moves to another place", next);
}

void ItemLeaseModel::TakeWordsOut(Key* key) const {
  key->here = 0;
  if (rules_.takes_out_by_key) key->old_place = Word::kNone;
}

void ItemLeaseModel::EndStep(State* state, Key* key, bool first) const {
  const bool generation_first = rules_.order == Order::kGenerationFirst;
  if (first != generation_first) {
    TakeWordsOut(key);
    if (rules_.order == Order::kEndFirst) key->until = state->end;
    return;
  }
  if (rules_.order == Order::kNoGeneration) return;
  if (!rules_.grows_at_once) {
    state->grows = 1;
    return;
  }
  GrowGeneration(state);
}

// For a write, for an eviction, or for another item that is more popular.
void ItemLeaseModel::EndingSteps(const State& state, int k, const Emit& emit) const {
  State next = state;
  Key& changed = next.keys[k];
  switch (state.keys[k].mark) {
    case Mark::kNone:
      return;
    case Mark::kLeased:
      EndStep(&next, &changed, true);
      changed.mark = Mark::kEnds1;
      return emit("a lease ends: the first step", next);
    case Mark::kEnds1:
      EndStep(&next, &changed, false);
      changed.mark = Mark::kEnds2;
      emit("a lease ends: the second step", next);
      if (rules_.ended_leases_stay_marked) return;
      changed.mark = Mark::kNone;
      return emit("a lease ends without a write, and is forgotten", next);
    case Mark::kEnds2:
      if (rules_.order != Order::kEndFirst) changed.until = state.end;
      changed.mark = Mark::kEnded;
      return emit("a lease ends: the end is read", next);
    case Mark::kEnded:
      if (state.keys[k].until > 0) return;
      changed.mark = Mark::kNone;
      return emit("the end is over", next);
  }
}

bool ItemLeaseModel::MayWrite(const Key& key) const {
  if (key.mark == Mark::kEnded) return key.until == 0 || !rules_.waits;
  return key.mark == Mark::kNone || (key.mark == Mark::kLeased && !rules_.updates_look);
}

State ItemLeaseModel::Published(State state, int k, bool there, uint8_t expiry) const {
  Key& key = state.keys[k];
  // The weaker variants that write a leased key take its word out, too. That is not enough.
  key.here = 0;
  if (key.old_place == Word::kRight) key.old_place = Word::kStale;
  key.there = there;
  key.expiry = expiry;
  key.waiting = 0;
  key.looked = 0;
  Outdate(&state, k, Word::kStale);
  return state;
}

void ItemLeaseModel::WriteSteps(const State& state, int k, const Emit& emit) const {
  const Key& key = state.keys[k];
  State next = state;
  if (scenario_.own_write && k == 0 && !state.own_write) {
    next.own_write = 1;
    emit("a client sends a write", next);
    next = state;
  }
  if (MayWrite(key) && !key.waiting) {
    if (key.mark == Mark::kEnded) next.keys[k].mark = Mark::kNone;
    next.keys[k].waiting = 1;
    if (scenario_.waiting) emit("a write is decided, and waits", next);
  }
  if (!rules_.looks_under_lock && MayWrite(key) && !key.looked) {
    State looked = state;
    looked.keys[k].looked = 1;
    emit("a write looks at the mark, without the lock", looked);
  }
  const bool publishes = scenario_.waiting ? key.waiting : MayWrite(key) || key.looked;
  if (publishes) {
    emit("a put is published", Published(next, k, true, 0));
    if (scenario_.expiry) {
      emit("a put that expires is published", Published(next, k, true, kTimeToLive));
    }
    next.own_write = 0;
    if (state.own_write) emit("the client's put is published", Published(next, k, true, 0));
    if (key.there) emit("a deletion is published", Published(next, k, false, 0));
  }
  // All clients look at the item's expiry, so nobody waits for them.
  if (key.mark == Mark::kLeased && !key.there && key.old_place == Word::kExpired) {
    next = state;
    next.keys[k].old_place = Word::kNone;
    next.keys[k].mark = Mark::kNone;
    emit("an expired item is removed", next);
  }
  if (rules_.evictions_wait || key.mark != Mark::kLeased || !key.there || key.waiting) return;
  next = state;
  next.keys[k].mark = Mark::kNone;
  TakeWordsOut(&next.keys[k]);
  GrowGeneration(&next);
  emit("a leased item is evicted", Published(next, k, false, 0));
}

// One end for all keys. Their locks are taken one after the other, and released.
void ItemLeaseModel::FlushSteps(const State& state, const Emit& emit) const {
  State next = state;
  const auto step = [&](Mark from, Mark to, auto&& change) {
    for (Key& key : next.keys) {
      if (key.mark != from) continue;
      change(&key);
      key.mark = to;
    }
    ++next.flush;
  };
  switch (state.flush) {
    case 0:
      step(Mark::kLeased, Mark::kEnds1, [&](Key* key) { TakeWordsOut(key); });
      return emit("FLUSH: the words of all keys go", next);
    case 1:
      step(Mark::kEnds1, Mark::kEnds2, [](Key*) {});
      if (rules_.grows_at_once) {
        GrowGeneration(&next);
      } else {
        next.grows = 1;
      }
      return emit("FLUSH: the generation grows, once", next);
    case 2:
      step(Mark::kEnds2, Mark::kEnded, [&](Key* key) { key->until = state.end; });
      next.flush_left = state.end;
      return emit("FLUSH: the end is read, once", next);
    default:
      next.flush = 0;
      emit("FLUSH is done", next);
      next = state;
      if (rules_.flush_looks_at_keys || state.flush_left > 0) return;
      for (int k = 0; k < scenario_.keys; ++k) {
        emit("FLUSH deletes a key without a look at it", Published(next, k, false, 0));
      }
  }
}

void ItemLeaseModel::TakeHeader(Client* client, bool of_words, bool words_after_header) {
  if (of_words) return;
  client->words = {};
  if (client->reading != Reading::kNothing && words_after_header) {
    client->reading = Reading::kOfOlderHeader;
  }
}

void ItemLeaseModel::ClientSteps(const State& state, int c, const Emit& emit) const {
  const Client& client = state.clients[c];
  State next = state;
  Client& changed = next.clients[c];
  if (rules_.header_is_whole) {
    changed.end = state.end + 1;
    TakeHeader(&changed, client.current, rules_.words_after_header);
    changed.current = 1;
    changed.former = 0;
    emit("a client READs the header", next);
  } else {
    HalfHeaderSteps(state, c, emit);
  }
  WordSteps(state, c, emit);
  if (rules_.clock_read_within_call || client.end <= 1) return;
  next = state;
  changed.noted = 1;
  emit("a client reads its clock, before a call", next);
}

void ItemLeaseModel::WordSteps(const State& state, int c, const Emit& emit) const {
  const Client& client = state.clients[c];
  State next = state;
  Client& changed = next.clients[c];
  if (client.reading == Reading::kNothing) {
    changed.reading = Reading::kOfHeader;
    return emit("a client posts a READ of words", next);
  }
  for (int k = 0; k < scenario_.keys; ++k) {
    if ((client.sampled >> k & 1) != 0) continue;
    const Key& key = state.keys[k];
    const auto sample = [&](Word word) {
      next = state;
      changed.samples[k] = word;
      changed.sampled |= 1 << k;
      emit("a word is sampled", next);
    };
    if (key.here) sample(Word::kRight);
    if (key.old_place != Word::kNone) sample(key.old_place);
    if (!key.here && key.old_place == Word::kNone) sample(Word::kNone);
  }
  if (client.sampled == 0) return;
  // It may be a READ of some words only.
  next = state;
  for (int k = 0; k < scenario_.keys; ++k) {
    if ((client.sampled >> k & 1) == 0 || client.reading != Reading::kOfHeader) continue;
    changed.words[k] = client.samples[k];
  }
  changed.samples = {};
  changed.sampled = 0;
  changed.reading = Reading::kNothing;
  emit("a READ of words completes", next);
}

// The weaker variant: generation and end are sampled at different moments, and nothing tells that.
void ItemLeaseModel::HalfHeaderSteps(const State& state, int c, const Emit& emit) const {
  const Client& client = state.clients[c];
  State next = state;
  Client& changed = next.clients[c];
  if (client.half == Half::kNone) {
    changed.half = client.current ? Half::kOfWords : Half::kOther;
    return emit("a client samples the header's generation", next);
  }
  changed.end = state.end + 1;
  TakeHeader(&changed, client.half == Half::kOfWords, true);
  if (client.half != Half::kOfWords) changed.current = client.half == Half::kOther;
  changed.half = Half::kNone;
  emit("a client samples the header's end", next);
}

bool ItemLeaseModel::Believes(const State& state, int c, int k) const {
  const Client& client = state.clients[c];
  if (c == 0 && k == 0 && state.own_write && rules_.own_writes_first) return false;
  if (!rules_.clock_read_within_call) return client.noted;
  return client.end > (rules_.upper_bound ? 1 : 0);
}

const char* ItemLeaseModel::Broken(const State& state) const {
  for (int c = 0; c < scenario_.clients; ++c) {
    for (int k = 0; k < scenario_.keys; ++k) {
      const Word word = state.clients[c].words[k];
      if (word == Word::kNone || !Believes(state, c, k)) continue;
      if (word == Word::kStale) return "an answer from a copy that was replaced";
      if (word == Word::kExpired) {
        if (!rules_.looks_at_expiry) return "an answer from a copy that has expired";
      } else if (c == 0 && k == 0 && state.own_write) {
        return "an answer overtakes the client's own write";
      }
    }
  }
  return nullptr;
}

}  // namespace gannet::model::item_lease
