// A store with a tier on a disk that fails, lies and is slow: random operations against a model of
// what each key has, while values are written, become stubs and are read, and, if the region is a
// memory file, the process is killed and another one takes over.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "server/memory/store/stubs.h"
#include "server/memory/tier/tier_buffer.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/memory/store/tier_process.h"
#include "tests/server/memory/tier/bad_disk.h"

namespace gannet::tier_random {
namespace {

constexpr uint64_t kOperations = 60'000;
constexpr uint64_t kOperationsOfLife = 20'000;
constexpr uint64_t kKeys = 1200;
constexpr uint64_t kLockedKeys = 200;
constexpr uint64_t kRegionBytes = 4 << 20;
constexpr uint64_t kIndexSlots = 700;  // fewer than keys, so the index grows
constexpr uint64_t kSegmentBytes = 128 << 10;
constexpr uint64_t kSegments = 12;
constexpr uint64_t kDiskBytes = kTierBlockBytes + kSegments * kSegmentBytes;
constexpr TierOfStore kTier{
    .number = 0x1122334455667788, .segment_bytes = kSegmentBytes, .segments = kSegments};
constexpr size_t kReadsAtOnce = 6;
constexpr uint64_t kReadMemoryBytes = 20 * kTierBlockBytes;  // less than they may need

uint64_t Operations() {
  const char* const given = std::getenv("GANNET_TIER_OPERATIONS");
  return given == nullptr ? kOperations : std::strtoull(given, nullptr, 10);
}

std::string KeyOf(uint64_t i) { return "key" + std::to_string(i) + std::string(i * 13 % 200, '-'); }

// What a key has. Its value is made anew from this, as no two values are the same.
struct Item {
  std::string Value() const {
    return std::string(bytes, static_cast<char>('a' + id % 26)) + std::to_string(id) +
           std::string(appended, '+');
  }

  uint64_t id = 0;
  size_t bytes = 0;
  size_t appended = 0;
  uint64_t version = 0;
  uint32_t flags = 0;
  uint64_t expiry_ms = 0;
  std::optional<TierPlace> stub;  // where its value was when it was looked at last
};

// What is true of a store, as far as the test knows. A kill brings a former one back.
struct Model {
  std::map<uint64_t, Item> items;
  std::map<uint64_t, uint32_t> forgotten;  // of segments by their begin: the lap of their stubs
};

struct Counts {
  uint64_t on_disk = 0, failed = 0, joined = 0, brought_in = 0, made = 0, evicted = 0;
  uint64_t forgotten = 0, brought_back = 0, promoted = 0, moved = 0, items_evicted = 0, growths = 0;
  uint64_t kills = 0, kills_in_writes = 0, stops = 0, flushes = 0, walks = 0, lives = 0;
};

enum class Disk : uint8_t { kFails, kLies };
enum class Region : uint8_t { kEndsWithTheProcess, kMemoryFile };

// From an empty region and an empty disk until all is deleted.
class Life {
 public:
  Life(uint64_t seed, Disk disk, Region region, Counts* counts)
      : random_(seed),
        lies_(disk == Disk::kLies),
        memory_file_(region == Region::kMemoryFile),
        counts_(*counts),
        region_(kRegionBytes),
        lock_words_(1024) {
    disk_.OnWrite([this] { KillInWrite(); });
    Begin();
  }
  ~Life() { End(); }

  void Run(uint64_t operations) {
    for (uint64_t i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      if (i % 2000 == 1999) CheckAll();
      Step();
    }
    CheckAll();
  }

  // What is left can be deleted, and then nothing is left, neither in memory nor on the disk.
  void DeleteAll() {
    deleting_ = true;
    kill_in_ = 0;
    TakeReads();
    disk_.SetWrites(BadDisk::Write::kDone);
    disk_.SetReads(BadDisk::Read::kDone);
    for (uint64_t i = 0; i < kKeys; ++i) Delete(i);
    while (store().Tidy(Now())) {
    }
    EXPECT_EQ(stubs().count(), 0u);
    EXPECT_EQ(stubs().bytes(), 0u);
    EXPECT_EQ(Stats().items, 0u);
    EXPECT_EQ(store().heap().use().allocated_bytes(), stubs().reserve().bytes());
    // What was chosen is gone, so that nothing is written, and nothing waits any more.
    if (process_->writer->disk(now_ns_) == TierWriter::Disk::kFailed) return;
    now_ns_ += TierWriter::kFullNs;
    while (Poll() == TierWriter::Did::kWorked) {
    }
    while (const auto item = stubs().ahead().TakeWritten()) stubs().ahead().Drop(item->version);
    EXPECT_EQ(stubs().ahead().bytes(), 0u);
    // Nothing holds a segment.
    EXPECT_EQ(process_->reads->under_way(), 0u);
    TierCircle& circle = *process_->circle;
    for (uint64_t i = 0; i < kSegments; ++i) {
      EXPECT_TRUE(circle.Seal().ok());
      const absl::StatusOr<bool> taken = circle.TakeOldest();
      EXPECT_TRUE(taken.ok() && *taken) << "a segment is pinned";
    }
  }

 private:
  Store& store() { return *process_->store; }
  Stubs& stubs() { return *process_->store->stubs(); }
  uint64_t Below(uint64_t n) { return random_() % n; }
  ServerTime Now() const { return At(now_ms_); }
  StatsReply Stats() {
    StatsReply stats{};
    store().FillStats(&stats);
    return stats;
  }

  // The process.

  void Begin() {
    const StoreOptions options{.region = region_.span(),
                               .lock_words = lock_words_,
                               .index_slots = kIndexSlots,
                               .incarnation = 0x1234567890abcdef + ++processes_,
                               .hash_seed = 42,
                               .evict = true,
                               .tier = kTier,
                               .memory_file = memory_file_};
    process_ = std::make_unique<TierProcess>(options, &disk_, kReadMemoryBytes);
    process_->items = std::make_unique<HeardItems>(
        &stubs(), [this] { Between(); },
        [this](const TierCircle::Segment& segment) { NoteLeaving(segment); },
        [this](const TierCircle::Segment& segment) { NoteForgotten(segment); });
    process_->writer = std::make_unique<TierWriter>(process_->circle.get(), process_->items.get());
  }
  // In order. Whoever waits for a read is told nothing.
  void End() {
    disk_.LetReadsGo(true);
    process_->done.Await(reading_.size());
    reading_.clear();
    disk_.LetReadsGo(false);
    counts_.made += stubs().counts().made;
    counts_.evicted += stubs().counts().evicted;
    evicted_ += stubs().counts().evicted;
    counts_.forgotten += stubs().counts().forgotten;
    counts_.brought_back += stubs().counts().brought_back;
    counts_.promoted += stubs().counts().promoted;
    counts_.joined += process_->reads->counts().joined;
    const StatsReply stats = Stats();
    counts_.moved += stats.items_moved;
    counts_.items_evicted += stats.items_evicted;
    counts_.growths += stats.index_growths;
    process_ = nullptr;
  }
  struct Image {
    std::vector<std::byte> region;
    std::vector<std::byte> disk;
    Model model;
  };
  Image TakeImage() {
    const std::span<const std::byte> region = region_.span();
    return {.region = {region.begin(), region.end()}, .disk = disk_.Copy(), .model = model_};
  }
  // Another process takes over what this one had left at that moment. Nobody has a lock.
  void GoOnFrom(const Image& image) {
    End();
    std::ranges::copy(image.region, region_.span().begin());
    disk_.Restore(image.disk);
    model_ = image.model;
    std::ranges::fill(lock_words_, 0);
    Begin();
  }
  void Restart() {
    if (!memory_file_) return;
    const uint64_t what = Below(4);
    if (what == 0) {
      ++counts_.stops;
      End();
      std::ranges::fill(lock_words_, 0);
      Begin();
    } else if (what == 1) {
      ++counts_.kills;
      GoOnFrom(TakeImage());
    } else if (!killed_) {
      kill_in_ = 1 + Below(12);
    }
  }
  void KillInWrite() {
    if (kill_in_ > 0 && --kill_in_ == 0) killed_ = TakeImage();
  }

  // The writer.

  TierWriter::Did Poll() {
    now_ns_ += kNsPerSecond / 4;
    const TierWriter::Did did = process_->writer->Poll(now_ns_);
    if (killed_) {
      ++counts_.kills_in_writes;
      const Image image = *std::exchange(killed_, std::nullopt);
      GoOnFrom(image);
    }
    return did;
  }
  // What others do while the writer works.
  void Between() {
    if (deleting_ || Below(4) != 0) return;
    const uint64_t i = Below(kKeys);
    switch (Below(4)) {
      case 0:
        return Put(i);
      case 1:
        return PutIf(i);
      case 2:
        return Touch(i);
      default:
        return Delete(i);
    }
  }
  // Returns whether the key is a stub that leads to the segment.
  bool LeadsTo(const TierCircle::Segment& segment, uint64_t i) {
    const std::optional<TierPlace> place = store().Get(KeyOf(i), {}, Now()).on_disk;
    return place && place->position >= segment.begin && place->position < segment.end;
  }
  void NoteLeaving(const TierCircle::Segment& segment) {
    locked_leaving_.clear();
    for (const auto& [i, item] : model_.items) {
      if (LockWordOf(i) != 0 && LeadsTo(segment, i)) locked_leaving_.push_back(i);
    }
  }
  // No stub leads there any more, unless the list is one of a former process, as two writes over it
  // were lost. The values of locked keys came back.
  void NoteForgotten(const TierCircle::Segment& segment) {
    uint32_t& lap = model_.forgotten[segment.begin];
    lap = std::max(lap, segment.lap);
    for (const auto& [i, item] : model_.items) {
      EXPECT_TRUE(lies_ || !LeadsTo(segment, i)) << "a stub leads to a segment that is taken";
    }
    if (lies_ || reads_fail_) return;
    for (const uint64_t i : locked_leaving_) {
      EXPECT_NE(store().Get(KeyOf(i), {}, Now()).status, ReplyStatus::kNotFound)
          << "the value of a locked key is lost";
    }
  }

  // The model.

  bool IsOver(const Item& item) const { return item.expiry_ms != 0 && item.expiry_ms <= now_ms_; }
  // What a key has, unless it has expired, or was evicted.
  Item* Known(uint64_t i) {
    const auto found = model_.items.find(i);
    return found == model_.items.end() || IsOver(found->second) ? nullptr : &found->second;
  }
  bool WasForgotten(const TierPlace& place) const {
    const uint64_t begin =
        kTierBlockBytes + (place.position - kTierBlockBytes) / kSegmentBytes * kSegmentBytes;
    const auto segment = model_.forgotten.find(begin);
    return segment != model_.forgotten.end() && segment->second >= place.lap;
  }
  // A key is not there, though nobody deleted it.
  void NoteGone(uint64_t i) {
    const auto found = model_.items.find(i);
    if (found == model_.items.end()) return;
    const Item item = found->second;
    model_.items.erase(found);
    if (item.stub && !IsOver(item) && !WasForgotten(*item.stub)) ++gone_from_disk_;
  }
  uint64_t& LockWordOf(uint64_t i) {
    return lock_words_[store().HashOf(KeyOf(i)).LockIndex(lock_words_.size())];
  }
  Item SomeItem() {
    const size_t bytes = Below(3) == 0 ? Below(300) : 4000 + Below(12'000);
    return {.id = ++values_,
            .bytes = bytes,
            .flags = static_cast<uint32_t>(Below(100)),
            .expiry_ms = Below(8) == 0 ? now_ms_ + 1 + Below(100) : 0};
  }

  // Operations.

  void Step() {
    const uint64_t what = Below(1000);
    const uint64_t i = Below(kKeys);
    if (what < 240) return Put(i);
    if (what < 490) return Get(Below(4) == 0 ? i % 50 : i);
    if (what < 540) return Touch(i);
    if (what < 590) return Append(i);
    if (what < 620) return Delete(i);
    if (what < 660) return PutIf(i);
    if (what < 800) {
      Poll();
      return;
    }
    if (what < 920) {
      store().Tidy(Now());
      return;
    }
    if (what < 940) {
      store().Compact(64);
      return;
    }
    if (what < 960) {
      uint64_t& word = LockWordOf(i % kLockedKeys);
      word = word == 0 ? 1 : 0;
      return;
    }
    if (what < 970) {
      ++now_ms_;
      return;
    }
    if (what < 985) return TakeReads();
    if (what < 995) return SetFaults();
    if (what < 999) return Restart();
    if (Below(10) == 0) Flush();
  }

  // Puts as a worker does: by the fast path in place if that is possible.
  WriteOutcome Write(uint64_t i, const Item& item, const WriteConditions& conditions) {
    const std::string key = KeyOf(i), value = item.Value();
    const ItemAttributes attributes{item.flags, ExpiresAt(item.expiry_ms)};
    if (!conditions.any() && attributes.expiry.never() && !memory_file_) {
      Store::Guess guess;
      store().GuessBucket(key, &guess);
      store().GuessItem(&guess);
      Store::Update update;
      if (store().UpdateInPlace(
              guess, key, value, [&item] { return item.flags; }, &update)) {
        return {.version = update.version, .slot = update.slot};
      }
    }
    return process_->writes->Put(key, value, attributes, conditions, Now()).outcome;
  }
  void NotePut(uint64_t i, Item item, const WriteOutcome& put) {
    EXPECT_FALSE(IsStub(Slot(put.slot)));
    item.version = put.version;
    model_.items[i] = item;
  }

  void Put(uint64_t i) {
    const Item item = SomeItem();
    const WriteOutcome put = Write(i, item, {});
    if (put.status == ReplyStatus::kOk) NotePut(i, item, put);
  }

  // By its version, or if it is absent. The answer needs no disk.
  void PutIf(uint64_t i) {
    const Item* const known = Known(i);
    const Item item = SomeItem();
    const uint64_t version = known == nullptr ? 1 : known->version - Below(2);
    const bool absent = Below(3) == 0;
    const WriteConditions conditions = absent ? WriteConditions{.only_if_absent = true}
                                              : WriteConditions{.only_if_version = version};
    const WriteOutcome put = Write(i, item, conditions);
    if (put.status == ReplyStatus::kOk) {
      if (absent) NoteGone(i);
      EXPECT_TRUE(absent || (known != nullptr && known->version == version));
      return NotePut(i, item, put);
    }
    if (put.status != ReplyStatus::kExists && put.status != ReplyStatus::kVersionMismatch) return;
    if (put.version == 0) return NoteGone(i);
    ASSERT_NE(known, nullptr) << KeyOf(i) << " came back";
    EXPECT_EQ(put.version, known->version);
    EXPECT_TRUE(absent || version != known->version);
  }

  void Delete(uint64_t i) {
    const auto deleted = process_->writes->Delete(KeyOf(i), {}, Now()).outcome;
    EXPECT_TRUE(deleted.status != ReplyStatus::kOk || Known(i) != nullptr) << "it came back";
    if (deleted.status == ReplyStatus::kNotFound) NoteGone(i);
    model_.items.erase(i);
  }

  void Touch(uint64_t i) {
    const uint64_t expiry_ms = now_ms_ + 1 + Below(200);
    const WriteOutcome touched =
        process_->writes->Touch(KeyOf(i), ExpiresAt(expiry_ms), {}, Now()).outcome;
    if (touched.status == ReplyStatus::kNotFound) return NoteGone(i);
    if (touched.status != ReplyStatus::kOk) return;
    Item* const item = Known(i);
    ASSERT_NE(item, nullptr) << KeyOf(i) << " came back";
    item->version = touched.version;
    item->expiry_ms = expiry_ms;
  }

  // Evictions may take any key at any time, but what is there is what it should be. Returns where
  // the value is, if it is on the disk.
  std::optional<TierPlace> Look(uint64_t i) {
    std::string value(64 << 10, ' ');
    const ReadOutcome read = store().Get(KeyOf(i), std::as_writable_bytes(std::span(value)), Now());
    if (read.status == ReplyStatus::kNotFound) {
      NoteGone(i);
      return std::nullopt;
    }
    Item* const item = Known(i);
    EXPECT_NE(item, nullptr) << KeyOf(i) << " came back";
    if (item == nullptr) return std::nullopt;
    const std::string known = item->Value();
    EXPECT_EQ(read.value_bytes, known.size());
    EXPECT_EQ(read.version, item->version);
    EXPECT_EQ(read.attributes.flags, item->flags);
    EXPECT_EQ(read.attributes.expiry, ExpiresAt(item->expiry_ms));
    EXPECT_EQ(read.status == ReplyStatus::kOk, !read.on_disk);
    if (!read.on_disk) {
      EXPECT_TRUE(value.substr(0, read.value_bytes) == known) << "another value of " << KeyOf(i);
    }
    item->stub = read.on_disk;
    return read.on_disk;
  }

  // A read that lasts. What it finds is what the key has now.
  void Get(uint64_t i) {
    const std::optional<TierPlace> place = Look(i);
    if (!place) return;
    if (reading_.size() == kReadsAtOnce) TakeReads();
    TierReads::Begun begun = BeginRead(i, *place);
    if (begun == TierReads::Begun::kNoMemory) {
      TakeReads();
      // A read that failed deleted the stub.
      begun = BeginRead(i, *place);
    }
    EXPECT_NE(begun, TierReads::Begun::kNoMemory) << "memory of reads was not given back";
    // Another GET of the key joins.
    if (begun == TierReads::Begun::kYes && reading_.size() < kReadsAtOnce && Below(8) == 0) {
      BeginRead(i, *place);
    }
  }
  struct Reading {
    uint64_t key;
    TierPlace place;
    std::string value;
  };
  TierReads::Begun BeginRead(uint64_t i, const TierPlace& place) {
    const Item* const item = Known(i);
    if (item == nullptr || item->stub != place) return TierReads::Begun::kTaken;
    const uint64_t tag = ++tags_;
    const TierReads::Begun begun =
        process_->reads->Begin(place, KeyOf(i), {.worker = 0, .tag = tag});
    if (begun == TierReads::Begun::kYes) reading_[tag] = {i, place, item->Value()};
    if (begun == TierReads::Begun::kTaken) NoteTaken(i, place);
    return begun;
  }
  void NoteTaken(uint64_t i, const TierPlace& place) {
    EXPECT_TRUE(lies_) << "a stub leads to a segment that was taken again";
    EXPECT_TRUE(stubs().Delete(store().HashOf(KeyOf(i)), place));
    model_.items.erase(i);
  }
  // All that are under way come back.
  void TakeReads() {
    disk_.LetReadsGo(true);
    process_->done.Await(reading_.size());
    disk_.LetReadsGo(false);
    std::vector<TierReads::Done> all = process_->reads->TakeDone(0);
    EXPECT_EQ(all.size(), reading_.size());
    std::ranges::sort(all, {}, &TierReads::Done::tag);
    for (const TierReads::Done& done : all) OnDone(done);
    reading_.clear();
  }
  void OnDone(const TierReads::Done& done) {
    const Reading& read = reading_.at(done.tag);
    if (done.value.ok()) {
      ++counts_.on_disk;
      EXPECT_TRUE(*done.value == read.value) << "another value of " << KeyOf(read.key);
      Promote(read.key, read.place, *done.value);
    } else {
      ++counts_.failed;
      EXPECT_TRUE(lies_ || reads_fail_) << done.value.status();
      if (stubs().Delete(store().HashOf(KeyOf(read.key)), read.place)) model_.items.erase(read.key);
    }
    process_->reads->Give(done.read);
  }

  // A value that comes into memory has no stub any more.
  void Promote(uint64_t i, const TierPlace& place, std::string_view value) {
    const std::string key = KeyOf(i);
    const uint64_t before = stubs().counts().promoted;
    stubs().Promote(store().HashOf(key), place, key, value);
    Item* const item = Known(i);
    if (item != nullptr && stubs().counts().promoted != before) item->stub.reset();
  }

  // Brings in first what is on the disk, as a server does.
  void Append(uint64_t i) {
    const std::string key = KeyOf(i);
    const auto append = [&] {
      const WriteConditions conditions{.only_if_present = true};
      return process_->writes->Append(key, "+", Writes::End::kBack, {}, conditions, Now()).outcome;
    };
    WriteOutcome appended = append();
    if (appended.needs_value) {
      EXPECT_EQ(appended.status, ReplyStatus::kUnimplemented);
      if (!BringIn(i)) return;
      appended = append();
    }
    if (appended.status == ReplyStatus::kNotFound) return NoteGone(i);
    if (appended.status != ReplyStatus::kOk) return;
    Item* const item = Known(i);
    ASSERT_NE(item, nullptr) << key << " came back";
    ++item->appended;
    item->version = appended.version;
    item->stub.reset();
  }
  bool BringIn(uint64_t i) {
    const std::string key = KeyOf(i);
    const std::optional<TierPlace> place = Look(i);
    EXPECT_TRUE(place);
    if (!place) return false;
    const KeyHash hash = store().HashOf(key);
    const TierBuffer buffer(kTierReadBytesMax);
    if (!process_->circle->Pin(*place)) {
      NoteTaken(i, *place);
      return false;
    }
    const auto value = process_->circle->Read(*place, key, buffer.bytes());
    process_->circle->Unpin(*place);
    if (!value.ok()) {
      EXPECT_TRUE(lies_ || reads_fail_) << value.status();
      if (stubs().Delete(hash, *place)) model_.items.erase(i);
      return false;
    }
    const std::optional<Reservation> room = store().Reserve(key, *value, Now());
    if (!room) return false;
    const bool there = stubs().ReplaceByItem(hash, *place, key, room->offset);
    counts_.brought_in += there;
    // It may have been evicted to make room for itself.
    if (there) {
      EXPECT_FALSE(Look(i)) << "a stub is there still";
    }
    return there;
  }

  void Flush() {
    ++counts_.flushes;
    for (uint64_t position = 0;;) {
      position = process_->writes->FlushSome(position, Now()).next;
      if (position == 0) break;
    }
    EXPECT_EQ(Stats().items, 0u);
    EXPECT_EQ(stubs().count(), 0u);
    model_.items.clear();
  }

  void SetFaults() {
    using Write = BadDisk::Write;
    using Read = BadDisk::Read;
    const uint64_t what = Below(8);
    Write write = Write::kDone;
    Read read = Read::kDone;
    if (what == 0) write = Write::kNoSpace;
    if (what == 1) read = Read::kFails;
    if (lies_ && what == 2) write = Write::kLost;
    if (lies_ && what == 3) write = Write::kTorn;
    if (lies_ && what == 4) read = Read::kElsewhere;
    if (lies_ && what == 5) read = Read::kBits;
    // Until another process begins.
    if (what == 6 && Below(50) == 0) write = Write::kFails;
    TakeReads();
    disk_.SetWrites(write);
    disk_.SetReads(read);
    reads_fail_ = read == Read::kFails;
  }

  // A walk finds all that is there, and it is what it should be; stubs lead to places of their own,
  // and their bytes are counted.
  void CheckAll() {
    ++counts_.walks;
    std::set<std::string> walked;
    for (uint64_t position = 0;;) {
      std::vector<std::string> keys;
      position = store().ListKeys(position, &keys);
      walked.insert(keys.begin(), keys.end());
      if (position == 0) break;
    }
    EXPECT_EQ(walked.size(), Stats().items);
    std::map<uint64_t, uint64_t> places;  // begin and end
    uint64_t stubs_there = 0, stub_bytes = 0;
    for (uint64_t i = 0; i < kKeys && !testing::Test::HasFailure(); ++i) {
      const std::string key = KeyOf(i);
      const bool was_walked = walked.erase(key) > 0;
      const std::optional<TierPlace> place = Look(i);
      EXPECT_TRUE(was_walked || Known(i) == nullptr) << key << " was passed over";
      if (!place) continue;
      ++stubs_there;
      stub_bytes += SizeClassBytes(SizeClassFor(StubBytes(key.size())));
      places[place->position] = place->position + TierRecordBytes(key.size(), place->value_bytes);
    }
    EXPECT_TRUE(walked.empty()) << *walked.begin();
    EXPECT_EQ(stubs().count(), stubs_there);
    EXPECT_EQ(stubs().bytes(), stub_bytes);
    EXPECT_LE(stub_bytes, store().heap().capacity_bytes() / 4);
    EXPECT_TRUE(lies_ || places.size() == stubs_there) << "two stubs lead to one place";
    uint64_t end = 0;
    for (const auto& [begin, record_end] : places) {
      EXPECT_TRUE(lies_ || begin >= end) << "two records share bytes";
      end = record_end;
    }
    EXPECT_LE(gone_from_disk_, evicted_ + stubs().counts().evicted) << "stubs are lost";
  }

  std::mt19937_64 random_;
  const bool lies_;
  const bool memory_file_;
  Counts& counts_;
  TestRegion region_;
  std::vector<uint64_t> lock_words_;
  CopiedDisk disk_{kDiskBytes};
  std::unique_ptr<TierProcess> process_;
  uint64_t processes_ = 0;
  Model model_;
  std::map<uint64_t, Reading> reading_;  // by tag
  uint64_t tags_ = 0;
  uint64_t now_ms_ = 1;
  int64_t now_ns_ = 0;
  uint64_t values_ = 0;
  bool reads_fail_ = false;
  bool deleting_ = false;  // all; nobody does anything else
  uint64_t kill_in_ = 0;   // moments of writes
  std::optional<Image> killed_;
  uint64_t evicted_ = 0;         // stubs, by processes that ended
  uint64_t gone_from_disk_ = 0;  // and neither told nor forgotten
  std::vector<uint64_t> locked_leaving_;
};

void Live(Disk disk, Region region) {
  Counts it;
  const uint64_t seed = test_support::TestSeed();
  for (uint64_t done = 0; done < Operations() && !testing::Test::HasFailure();
       done += kOperationsOfLife) {
    SCOPED_TRACE("life " + std::to_string(it.lives));
    Life life(seed + it.lives++, disk, region, &it);
    life.Run(std::min(kOperationsOfLife, Operations() - done));
    life.DeleteAll();
  }
  std::cout << it.on_disk << " values from the disk, " << it.joined << " of them joined, "
            << it.failed << " reads failed, " << it.made << " stubs, " << it.evicted << " evicted, "
            << it.forgotten << " forgotten, " << it.brought_back << " brought back, "
            << it.brought_in << " brought in, " << it.promoted << " promoted, " << it.moved
            << " moved, " << it.items_evicted << " items evicted, " << it.growths << " growths, "
            << it.stops << " stops, " << it.kills << " kills, " << it.kills_in_writes
            << " kills in writes, " << it.flushes << " flushes, " << it.walks << " walks"
            << std::endl;
  EXPECT_GT(it.on_disk, Operations() / 1'000);
  EXPECT_GT(it.joined, 0u);
  EXPECT_GT(it.failed, Operations() / 10'000);
  EXPECT_GT(it.made, Operations() / 100);
  EXPECT_GT(it.forgotten, Operations() / 2'000);
  EXPECT_TRUE(disk == Disk::kLies || it.brought_back > 0);
  EXPECT_GT(it.brought_in, Operations() / 10'000);
  EXPECT_GT(it.promoted, 0u);
  EXPECT_GT(it.moved, 0u);
  EXPECT_GE(it.growths, it.lives);
  if (region == Region::kMemoryFile) {
    EXPECT_GT(it.stops, 0u);
    EXPECT_GT(it.kills, 0u);
    EXPECT_GT(it.kills_in_writes, 0u);
  }
}

TEST(StoreTierRandomTest, OnADiskThatFails) { Live(Disk::kFails, Region::kEndsWithTheProcess); }
TEST(StoreTierRandomTest, OnADiskThatLies) { Live(Disk::kLies, Region::kEndsWithTheProcess); }
TEST(StoreTierRandomTest, InAMemoryFileOnADiskThatFails) {
  Live(Disk::kFails, Region::kMemoryFile);
}
TEST(StoreTierRandomTest, InAMemoryFileOnADiskThatLies) { Live(Disk::kLies, Region::kMemoryFile); }

}  // namespace
}  // namespace gannet::tier_random
