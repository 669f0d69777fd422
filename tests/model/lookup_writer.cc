#include "tests/model/lookup_writer.h"

#include <cstdlib>

namespace gannet::model::lookup {
namespace {

// The second word of a bucket: version 5 bits, moves 3, stash tag 1.
constexpr uint16_t kVersionMask = 0x1f;
constexpr uint16_t kMovesShift = 5;
constexpr uint16_t kMovesMask = 7 << kMovesShift;
constexpr uint16_t kStashTag = 1 << 8;
constexpr uint16_t kContentSlotShift = 9;
constexpr uint16_t kSlotBits = 2;
constexpr uint16_t kLive = 1 << 15;
constexpr uint16_t kCommitKeyShift = 4;
static_assert(kContentSlotShift + kSlots * kSlotBits <= 16 && kBlocks < 1 << kSlotBits);

}  // namespace

uint16_t BucketContent(const std::array<uint16_t, kWords>& words, int bucket) {
  uint16_t content = words[MetaWord(bucket)];
  for (int slot = 0; slot < kSlots; ++slot) {
    content |= words[SlotWord(bucket, slot)] << (kContentSlotShift + slot * kSlotBits);
  }
  return content;
}

uint16_t MovesOf(uint16_t meta) { return (meta & kMovesMask) >> kMovesShift; }
bool StashTagOf(uint16_t meta) { return meta & kStashTag; }

uint16_t LiveCommit(uint16_t key_word, uint16_t value) {
  return kLive | key_word << kCommitKeyShift | value;
}
bool IsLive(uint16_t commit) { return commit & kLive; }

int Writer::FreeSlot(const State& state, int bucket) {
  if (bucket == kElsewhere) return 0;
  for (int slot = 0; slot < kSlots; ++slot) {
    if (state.memory[SlotWord(bucket, slot)] == 0) return slot;
  }
  return -1;
}

bool Writer::BlockFree(const State& state, int block) {
  for (const auto& place : state.places) {
    if (place.present && place.block == block) return false;
  }
  return true;
}

Writer::State Writer::Insert(Key key, Bucket bucket, int block) {
  const auto slot = static_cast<uint8_t>(FreeSlot(before_, bucket));
  WriteContent(key, block, after_.next_value++);
  Fence();
  after_.places[key] = {1, bucket, slot, static_cast<uint8_t>(block)};
  if (!rules_.live_after_slot_published) {
    SetLive(key, block);
    Fence();
  }
  Publish(bucket, {.slot = slot, .slot_content = SlotContent(block)});
  Fence();
  if (bucket == kStash) PublishStashTag();
  if (rules_.live_after_slot_published) SetLive(key, block);
  return Finish();
}

Writer::State Writer::Delete(Key key) {
  const auto place = after_.places[key];
  if (rules_.dead_before_slot_cleared) SetDead(place.block);
  Fence();
  after_.places[key] = {};
  Publish(place.bucket, {.slot = place.slot});
  Fence();
  if (place.bucket == kStash) PublishStashTag();
  if (!rules_.dead_before_slot_cleared) SetDead(place.block);
  return Finish();
}

Writer::State Writer::ReplaceInPlace(Key key) {
  const int block = after_.places[key].block;
  WriteContent(key, block, after_.next_value++);
  Fence();
  SetLive(key, block);
  return Finish();
}

Writer::State Writer::ReplaceOutOfPlace(Key key, int block) {
  auto& place = after_.places[key];
  WriteContent(key, block, after_.next_value++);
  Fence();
  // A dead item does not mean that K is absent: K keeps its old value until the new one is live.
  const uint16_t dead_commit =
      rules_.state_in_commit_word ? CommitWord(place.block) : StateWord(place.block);
  Store(dead_commit, 0);
  Fence();
  SetLive(key, block);
  Fence();
  place.block = static_cast<uint8_t>(block);
  Publish(place.bucket, {.slot = place.slot, .slot_content = SlotContent(block)});
  return Finish();
}

Writer::State Writer::ReplaceOutOfPlaceFreeingEarly(int block) {
  auto& place = after_.places[kKeyK];
  const uint8_t old_block = place.block;
  WriteContent(kKeyK, block, after_.next_value++);
  Fence();
  Store(CommitWord(old_block), 0);
  Fence();
  SetLive(kKeyK, block);
  Fence();
  WriteContent(kKeyX, old_block, after_.next_value++);
  Fence();
  after_.places[kKeyX] = {1, kElsewhere, 0, old_block};
  SetLive(kKeyX, old_block);
  Fence();
  place.block = static_cast<uint8_t>(block);
  Publish(place.bucket, {.slot = place.slot, .slot_content = SlotContent(block)});
  return Finish();
}

Writer::State Writer::MoveInWindow(Key key) {
  auto& place = after_.places[key];
  const int from = place.bucket;
  const int to = from == kHome ? kNext : kHome;
  const int to_slot = FreeSlot(before_, to);
  const auto publish_destination = [&] {
    Publish(to, {.slot = to_slot,
                 .slot_content = SlotContent(place.block),
                 .bump = rules_.bump_destination});
  };
  if (rules_.destination_first) publish_destination();
  FenceBetweenPublications();
  Publish(from, {.slot = place.slot, .bump = rules_.bump_source});
  FenceBetweenPublications();
  if (!rules_.destination_first) publish_destination();
  place.bucket = static_cast<uint8_t>(to);
  place.slot = static_cast<uint8_t>(to_slot);
  return Finish();
}

Writer::State Writer::MoveToStash(Key key) {
  auto& place = after_.places[key];
  const auto from = place;
  place.slot = static_cast<uint8_t>(FreeSlot(before_, kStash));
  place.bucket = kStash;
  const Change at_stash = {.slot = place.slot, .slot_content = SlotContent(place.block)};
  if (rules_.destination_first) Publish(kStash, at_stash);
  FenceBetweenPublications();
  // In the home bucket, tag and slot change in one publication.
  const bool from_home = from.bucket == kHome;
  Publish(kHome, {.slot = from_home ? from.slot : -1,
                  .bump = rules_.bump_home_on_stash_move,
                  .tag_follows = true});
  FenceBetweenPublications();
  Publish(kNext, {.slot = from_home ? -1 : from.slot, .bump = rules_.bump_next_on_stash_move});
  FenceBetweenPublications();
  if (!rules_.destination_first) Publish(kStash, at_stash);
  return Finish();
}

Writer::State Writer::MoveFromStash(Key key, Bucket to) {
  auto& place = after_.places[key];
  const auto from = place;
  place.slot = static_cast<uint8_t>(FreeSlot(before_, to));
  place.bucket = to;
  const Change at_next = {.slot = to == kNext ? place.slot : -1,
                          .slot_content = SlotContent(place.block),
                          .bump = rules_.bump_next_on_stash_move};
  const Change at_home = {.slot = to == kHome ? place.slot : -1,
                          .slot_content = SlotContent(place.block),
                          .bump = rules_.bump_home_on_stash_move,
                          .tag_follows = true};
  Publish(kNext, at_next);
  FenceBetweenPublications();
  Publish(kHome, at_home);
  FenceBetweenPublications();
  Publish(kStash, {.slot = from.slot});
  return Finish();
}

void Writer::Publish(int bucket, const Change& change) {
  if (bucket == kElsewhere) return;
  uint16_t meta = after_.memory[MetaWord(bucket)];
  const uint16_t version = (meta + (rules_.bump_version ? 1 : 0)) & kVersionMask;
  const uint16_t moves = (MovesOf(meta) + (change.bump ? 1 : 0)) % rules_.counter_values;
  bool tag = StashTagOf(meta);
  if (change.tag_follows) {
    tag = false;
    for (const auto& place : after_.places) tag |= place.present && place.bucket == kStash;
  }
  meta = version | moves << kMovesShift | (tag ? kStashTag : 0);
  if (change.slot >= 0) Store(SlotWord(bucket, change.slot), change.slot_content);
  Store(MetaWord(bucket), meta);
  Store(ChecksumWord(bucket), BucketContent(after_.memory, bucket));
}

void Writer::PublishStashTag() {
  Publish(kHome, {.tag_follows = true});
  Fence();
}

void Writer::WriteContent(Key key, int block, uint16_t value) {
  Store(KeyWord(block), KeyContent(key));
  Store(ValueWord(block), value);
  if (!rules_.state_in_commit_word) Store(CommitWord(block), LiveCommit(KeyContent(key), value));
}

void Writer::SetLive(Key key, int block) {
  const uint16_t value = after_.memory[ValueWord(block)];
  const uint16_t truth = key == kKeyK ? value : LookupModel::kSameTruth;
  if (rules_.state_in_commit_word) {
    Store(CommitWord(block), LiveCommit(KeyContent(key), value), truth);
  } else {
    Store(StateWord(block), 1, truth);
  }
}

void Writer::SetDead(int block) {
  const bool is_k = before_.places[kKeyK].present && before_.places[kKeyK].block == block;
  Store(rules_.state_in_commit_word ? CommitWord(block) : StateWord(block), 0,
        is_k ? 0 : LookupModel::kSameTruth);
}

void Writer::Store(Word word, uint16_t value, uint16_t truth) {
  if (after_.plan_size == LookupModel::kStoresMax) std::abort();
  after_.plan[after_.plan_size++] = {word, group_, value, truth};
  after_.memory[word] = value;
}

Writer::State Writer::Finish() {
  after_.memory = before_.memory;
  --after_.operations_left;
  return after_;
}

}  // namespace gannet::model::lookup
