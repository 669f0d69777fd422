// Uses of Index without the lock that they need. The compiler refuses each of them:
// tests/tree/refused_uses_test.py compares what clang says of this file with its comments.

#include "server/memory/index/index.h"

namespace gannet {

constexpr auto kIsKey = [](Slot) { return true; };

// These are right, so what is refused below is refused for its lock.
void RightUses(Index& index, KeyHash hash, Slot slot, const std::byte* guess) {
  {
    const Index::Lock lock(index, hash);
    index.Insert(lock, hash, slot);
    const auto found = index.Find(lock, hash, kIsKey);
    Index::Replace(lock, found->place, slot);
    Index::Remove(lock, found->place);
  }
  {
    const Index::KeyLock lock(index, hash);
    index.LoadGuessed(lock, guess);
  }
  const Index::KeyTry lock(index, hash);
  index.LoadGuessed(lock, guess);
}

void WithoutLock(Index& index, KeyHash hash, Slot slot, const Index::Place& place,
                 const std::byte* guess) {
  index.Insert(hash, slot);     // expected-error {{too few arguments}}
  index.Find(hash, kIsKey);     // expected-error {{no matching member function}}
  Index::Replace(place, slot);  // expected-error {{too few arguments}}
  Index::Remove(place);         // expected-error {{too few arguments}}
  index.LoadGuessed(guess);     // expected-error {{private member}}
}

// A lock of one key's item is not enough to find or change its slot.
void WithLockOfAnItem(Index& index, KeyHash hash, Slot slot, const Index::Place& place) {
  const Index::KeyLock lock(index, hash);
  index.Insert(lock, hash, slot);     // expected-error {{no viable conversion}}
  index.Find(lock, hash, kIsKey);     // expected-error {{no matching member function}}
  Index::Replace(lock, place, slot);  // expected-error {{no viable conversion}}
  Index::Remove(lock, place);         // expected-error {{no viable conversion}}
  const Index::KeyTry tried(index, hash);
  index.Insert(tried, hash, slot);  // expected-error {{no viable conversion}}
}

// Nor does a table change without Index.
void PastIndex(Index& index, KeyHash hash, Slot slot, const Index::Place& place) {
  IndexTable& table = index.TableOf(hash);
  table.Insert(hash, slot);    // expected-error {{private member}}
  table.Find(hash, kIsKey);    // expected-error {{private member}}
  table.Replace(place, slot);  // expected-error {{private member}}
  table.Remove(place);         // expected-error {{private member}}
  table.SetMigrated(0);        // expected-error {{private member}}
}

// A lock ends with its scope: it cannot be kept.
void Kept(Index& index, KeyHash hash) {
  const Index::Lock lock(index, hash);
  const Index::Lock copy = lock;  // expected-error {{deleted constructor}}
  const Index::KeyLock item(index, hash);
  const Index::KeyLock item_copy = item;  // expected-error {{deleted constructor}}
}

}  // namespace gannet
