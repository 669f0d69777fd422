#ifndef GANNET_TESTS_SERVER_GROUP_MEMBERS_JOIN_FIXTURE_H_
#define GANNET_TESTS_SERVER_GROUP_MEMBERS_JOIN_FIXTURE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "server/group/members/joiner.h"
#include "server/log/changes/change_stream.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {

// The stream from a primary to a joiner, as a queue of copies. Any thread may write it.
class RelayedChanges : public ChangeConsumer {
 public:
  bool Take(const Change& change, ChangePlace*) override;
  // Gives the oldest change to `apply`. Returns false if there is none.
  bool Pop(const std::function<void(const Change&)>& apply);
  // The stream begins here.
  void Begin();

 private:
  struct Copy {
    Change change;
    std::string key;
    std::string value;
  };
  Mutex mutex_;
  std::deque<Copy> copies_ GANNET_GUARDED_BY(mutex_);
};

// A primary that is a whole server, and a backup's store that joins it. One thread steps both, on a
// clock that the test sets.
class JoinFixture : public ServerTest, private ServerTimeSource {
 protected:
  // What the joiner is told of what was applied. The weaker ones are wrong.
  enum class Told : uint8_t { kAll, kNoDeletions, kNoExpiring };

  void TearDown() override;
  // Starts the primary, with a relay that hears of its changes.
  void StartPrimary(const std::function<void(Server::Options*)>& change = nullptr);
  void MakeBackup(uint64_t bytes, uint64_t slots, bool grows = true);
  Joiner::Options JoinOptions();
  BootTime boot_now() const { return now().boot; }
  // Opens the stream, and begins to join.
  void Join(Joiner::Options options);
  void Join() { Join(JoinOptions()); }

  // Changes the primary's store as a client would.
  void Put(std::string_view key, std::string_view value, ItemAttributes attributes = {});
  void Delete(std::string_view key);
  // One change, or a step of tidying, chosen at random.
  void ChangeSomething(uint32_t keys, std::mt19937_64& random);
  std::string RandomValue(std::mt19937_64& random) const;

  // Applies up to `n` changes to the backup, in their order.
  void ApplySome(uint64_t n);
  // Steps the primary and polls the joiner until it is done or has failed. Calls `between` before
  // each Poll.
  Joiner::Step Finish(const std::function<void()>& between = [] {});

  // Passes so much time, unless the clock is too far ahead of the real time: the device works in
  // that, and must not seem dead while its threads wait for a core.
  void PassSome(int64_t ns);

  // An item's value, version, flags and expiry, as text.
  using Items = std::map<std::string, std::string>;
  Items ItemsOf(Store& store);
  // Returns what is different in the backup, as text, or "".
  std::string Difference();

  TestStore& backup() { return *backup_; }
  Joiner& joiner() { return *joiner_; }

  Told told_ = Told::kAll;
  RelayedChanges relay_;
  uint64_t long_bytes_max_ = 100'000;

 private:
  ServerTime Time() const override { return now().server_time; }

  int64_t may_pass_ns_ = kNsPerSecond;
  int64_t looked_ns_ = MonotonicNs();
  std::unique_ptr<TestStore> backup_;
  std::optional<StoreJoinTarget> target_;
  std::unique_ptr<Joiner> joiner_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MEMBERS_JOIN_FIXTURE_H_
