#ifndef GANNET_TESTS_SERVER_MEMORY_STORE_STORE_FIXTURE_H_
#define GANNET_TESTS_SERVER_MEMORY_STORE_STORE_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/server_time.h"
#include "server/log/changes/change_stream.h"
#include "server/memory/store/item_writer.h"
#include "server/memory/store/store.h"
#include "server/memory/store/store_update.h"
#include "server/writes/writes.h"
#include "tests/server/memory/store/at.h"

namespace gannet {

// Page-aligned zeroed memory, taken from the system only as far as it is touched.
class TestRegion {
 public:
  explicit TestRegion(size_t bytes)
      : span_(static_cast<std::byte*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
              bytes) {}
  ~TestRegion() { munmap(span_.data(), span_.size()); }
  TestRegion(const TestRegion&) = delete;
  TestRegion& operator=(const TestRegion&) = delete;
  std::span<std::byte> span() const { return span_; }

 private:
  std::span<std::byte> span_;
};

// A store in its own memory, with short ways to call it.
class TestStore {
 public:
  enum class OnFull { kReject, kEvict };
  // By the server's clock. Tests count it in milliseconds.
  struct Time {
    constexpr Time(uint64_t ms) : it(At(ms)) {}           // NOLINT(google-explicit-constructor)
    constexpr Time(ServerTime time) : it(time) {}         // NOLINT(google-explicit-constructor)
    constexpr operator ServerTime() const { return it; }  // NOLINT(google-explicit-constructor)
    ServerTime it;
  };
  explicit TestStore(size_t region_bytes, uint64_t index_slots = 0, bool index_grows = false,
                     OnFull on_full = OnFull::kReject, ItemLeases* leases = nullptr,
                     std::optional<TierOfStore> tier = std::nullopt)
      : region_(region_bytes), lock_words_(1024) {
    auto store = Store::Create({.region = region_.span(),
                                .lock_words = lock_words_,
                                .index_slots = index_slots,
                                .index_grows = index_grows,
                                .incarnation = 0x1234567890abcdef,
                                .hash_seed = 42,
                                .evict = on_full == OnFull::kEvict,
                                .leases = leases,
                                .tier = tier});
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = std::move(store).value();
    writes_ = std::make_unique<Writes>(store_.get());
  }

  Store& operator*() { return *store_; }
  Store* operator->() { return store_.get(); }
  Writes& writes() { return *writes_; }
  ChangeStream& changes() { return changes_; }
  std::span<std::byte> region() const { return region_.span(); }
  uint64_t& LockWordOf(std::string_view key) {
    const KeyHash hash = KeyHash::Of(key, store_->superblock().hash_seed);
    return lock_words_[hash.LockIndex(lock_words_.size())];
  }

  WriteOutcome Put(std::string_view key, std::string_view value, Time now = 1) {
    return Put(key, value, {}, {}, now);
  }
  // Puts as a worker does: by the fast path in place if that is possible.
  WriteOutcome Put(std::string_view key, std::string_view value, ItemAttributes attributes,
                   const WriteConditions& conditions, Time now) {
    Store::Update update;
    if (!store_->records() && !conditions.any() && attributes.expiry.never() &&
        UpdateInPlace(key, value, attributes.flags, &update)) {
      updates_in_place_.fetch_add(1, std::memory_order_relaxed);
      return {.version = update.version, .slot = update.slot};
    }
    return GeneralPut(key, value, attributes, conditions, now);
  }
  WriteOutcome GeneralPut(std::string_view key, std::string_view value, ItemAttributes attributes,
                          const WriteConditions& conditions, Time now) {
    return writes_->Put(key, value, attributes, conditions, now).outcome;
  }
  WriteOutcome CommitPut(const Reservation& reservation, std::string_view key,
                         ItemAttributes attributes, const WriteConditions& conditions, Time now) {
    return writes_->CommitPut(reservation, key, attributes, conditions, now).outcome;
  }
  bool UpdateInPlace(std::string_view key, std::string_view value, uint32_t flags,
                     Store::Update* update) {
    Store::Guess guess;
    store_->GuessBucket(key, &guess);
    store_->GuessItem(&guess);
    const ItemLeases* const leases = store_->leases();
    if (leases != nullptr && leases->MayHave(KeyHash(guess.hash))) guess.Drop();
    return store_->UpdateInPlace(
        guess, key, value, [flags] { return flags; }, update);
  }
  uint64_t updates_in_place() const { return updates_in_place_.load(std::memory_order_relaxed); }
  // Reserves, brings the value, and commits, as for a value that the NIC READs.
  WriteOutcome PutReserved(std::string_view key, std::string_view value,
                           const WriteConditions& conditions = {}, Time now = 1) {
    auto reservation = store_->Reserve(key, value.size(), now);
    if (!reservation) return {.status = ReplyStatus::kHeapFull};
    StoreValueAt(reservation->value.data(), value);
    return writes_->CommitPut(*reservation, key, {}, conditions, now).outcome;
  }
  ReplyStatus CommitPut(const Store::Reservation& reservation, std::string_view key) {
    return writes_->CommitPut(reservation, key, {}, {}, At(1)).outcome.status;
  }
  std::optional<std::string> Get(std::string_view key, Time now = 1) {
    // Made once, because tests call this a million times.
    thread_local std::string value(1 << 20, '\0');
    const ReadOutcome read = store_->Get(key, std::as_writable_bytes(std::span(value)), now);
    if (read.status != ReplyStatus::kOk) return std::nullopt;
    return value.substr(0, read.value_bytes);
  }
  WriteOutcome Delete(std::string_view key, Time now = 1) { return Delete(key, {}, now); }
  WriteOutcome Delete(std::string_view key, const WriteConditions& conditions, Time now) {
    return writes_->Delete(key, conditions, now).outcome;
  }
  WriteOutcome Append(std::string_view key, std::string_view piece, Writes::End end,
                      ItemAttributes made = {}, const WriteConditions& conditions = {},
                      Time now = 1) {
    return writes_->Append(key, piece, end, made, conditions, now).outcome;
  }
  WriteOutcome Increment(std::string_view key, const CounterOperands& operands,
                         ItemAttributes made = {}, const WriteConditions& conditions = {},
                         Time now = 1) {
    return writes_->Increment(key, operands, made, conditions, now).outcome;
  }
  WriteOutcome Touch(std::string_view key, uint64_t expiry_ms,
                     const WriteConditions& conditions = {}, Time now = 1) {
    return writes_->Touch(key, ExpiresAt(expiry_ms), conditions, now).outcome;
  }
  Writes::Flushed FlushSome(uint64_t position, Time now = 1) {
    return writes_->FlushSome(position, now);
  }
  StatsReply Stats() const {
    StatsReply stats{};
    store_->FillStats(&stats);
    return stats;
  }

 private:
  TestRegion region_;
  std::vector<uint64_t> lock_words_;
  ChangeStream changes_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Writes> writes_;
  std::atomic<uint64_t> updates_in_place_{0};  // threads count together
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_STORE_STORE_FIXTURE_H_
