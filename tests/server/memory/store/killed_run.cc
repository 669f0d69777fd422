#include "tests/server/memory/store/killed_run.h"

#include "absl/strings/str_cat.h"
#include "server/memory/store/stubs.h"
#include "tests/server/memory/store/at.h"

namespace gannet {
namespace {

constexpr uint64_t kLongAfterMs = 1'000'000;

}  // namespace

KilledRun::KilledRun(const Options& options)
    : options_(options), random_(options.seed), region_(options.region_bytes), lock_words_(64) {
  auto store = Open(region_.span(), 0x1111222233334444);
  EXPECT_TRUE(store.ok()) << store.status();
  store_ = std::move(store).value();
  writes_ = std::make_unique<Writes>(store_.get());
}

absl::StatusOr<std::unique_ptr<Store>> KilledRun::Open(std::span<std::byte> region,
                                                       uint64_t incarnation,
                                                       const std::optional<TierOfStore>& tier) {
  return Store::Create({.region = region,
                        .lock_words = lock_words_,
                        .index_slots = options_.index_slots,
                        .index_grows = options_.index_grows,
                        .incarnation = incarnation,
                        .hash_seed = 42,
                        .first_version = 1000,
                        .evict = options_.evict,
                        .tier = tier,
                        .memory_file = true,
                        .take_over_threads = options_.take_over_threads});
}

void KilledRun::Prepare(int operations) {
  for (int i = 0; i < operations; ++i) Operate();
}

KeyStates KilledRun::States(Store& store) const {
  KeyStates states;
  std::string value(1 << 16, '\0');
  for (uint32_t i = 0; i < options_.keys; ++i) {
    const ReadOutcome read =
        store.Get(Key(i), std::as_writable_bytes(std::span(value)), At(kKilledRunMs));
    if (read.on_disk) {
      states[Key(i)] = {absl::StrCat("on disk ", read.on_disk->position, " ", read.on_disk->lap,
                                     " ", read.on_disk->version, " ", read.value_bytes),
                        read.version, read.attributes};
    }
    if (read.status != ReplyStatus::kOk) continue;
    states[Key(i)] = {value.substr(0, read.value_bytes), read.version, read.attributes};
  }
  return states;
}

void KilledRun::Put(const std::string& key) {
  const bool large = options_.large_bytes != 0 && Random(8) == 0;
  const uint32_t bytes =
      large ? options_.large_bytes + Random(2000) : Random(options_.value_bytes_max);
  const std::string value(bytes, static_cast<char>('a' + Random(26)));
  const uint64_t expiry_ms = Random(4) == 0 ? kLongAfterMs + Random(1000) : 0;
  writes_->Put(key, value, {.flags = Random(1000), .expiry = ExpiresAt(expiry_ms)}, {},
               At(kKilledRunMs));
}

void KilledRun::MakeStub(const std::string& key) {
  const ReadOutcome read = store_->Get(key, {}, At(kKilledRunMs));
  const KeyHash hash = store_->HashOf(key);
  if (read.status == ReplyStatus::kNotFound) return;
  if (read.on_disk) {
    store_->stubs()->Delete(hash, *read.on_disk);
    return;
  }
  const TierPlace place{.position = kTierBlockBytes * (1 + Random(100)),
                        .lap = 1 + Random(3),
                        .value_bytes = read.value_bytes,
                        .version = read.version};
  store_->stubs()->Make(hash, place);
}

void KilledRun::Operate() {
  const std::string key = Key(Random(options_.keys));
  if (options_.tier && Random(3) == 0) return MakeStub(key);
  switch (Random(10)) {
    case 0:
    case 1:
      writes_->Delete(key, {}, At(kKilledRunMs));
      return;
    case 2:
      writes_->Touch(key, ExpiresAt(kLongAfterMs + Random(1000)), {}, At(kKilledRunMs));
      return;
    case 3:
      writes_->Append(key, "more", Writes::End::kBack, {.flags = 5}, {}, At(kKilledRunMs));
      return;
    case 4:
      store_->Compact(8);
      return;
    case 5:
      store_->Tidy(At(kKilledRunMs));
      return;
    default:
      Put(key);
  }
}

}  // namespace gannet
