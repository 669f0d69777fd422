#ifndef SOFTVERBS_NIC_STRANGERS_H_
#define SOFTVERBS_NIC_STRANGERS_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

namespace softverbs {

// The connections of other hosts that have not proven the key yet: their NetOpening or their Proof
// is still to come. They wait apart, so that they cannot keep out hosts that have the key.
//
// 1. At most max() wait in all, and at most of_one_address() of one address.
// 2. If all places are taken, the oldest of the address that has the most leaves at once for a
//    newcomer whose address has less.
// 3. Among those of one address, the oldest leaves for a newcomer if it has had kGraceNs. Otherwise
//    the newcomer gets no place: a host that opens many connections at once, and is too busy to
//    prove them soon, would lose them again and again.
// 4. Nothing that a stranger sends changes its age.
//
// How long each may wait is the business of who adds it. Loop thread.
class Strangers {
 public:
  static constexpr size_t kMax = 256;
  static constexpr size_t kOfOneAddressMax = 128;
  static constexpr int64_t kGraceNs = 2'000'000'000;

  using Id = uint64_t;  // never 0, never reused

  // `descriptors` is how many the process may have. Strangers take at most a quarter of them.
  explicit Strangers(size_t descriptors);

  // Adds a connection that comes from this address at this time. Returns 0 if there is no place.
  // `leave` is called if it must make room for another, and then it is no longer here.
  Id Add(const ibv_gid& from, int64_t now_ns, std::function<void()> leave);
  // Takes a connection out, because it has proven the key or has ended. Ignores one that is not
  // here.
  void Remove(Id id);
  // Makes the oldest one of the address with the most leave, to free its descriptor. Returns false
  // if there is none.
  bool DropOne();

  size_t size() const { return strangers_.size(); }
  size_t max() const { return max_; }
  size_t of_one_address() const { return of_one_address_; }

 private:
  using Address = std::array<uint8_t, 16>;
  struct Stranger {
    Address from;
    int64_t since_ns;
    std::function<void()> leave;
  };
  using Iterator = std::map<Id, Stranger>::iterator;

  bool MakeRoom(const Address& newcomer, int64_t now_ns);
  Address AddressWithMost() const;
  Iterator OldestOf(const Address& from);
  void Drop(Iterator stranger);
  std::function<void()> Take(Iterator stranger);

  const size_t max_;
  const size_t of_one_address_;
  Id last_id_ = 0;
  std::map<Id, Stranger> strangers_;  // the oldest first
  std::map<Address, size_t> counts_;  // never 0
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_STRANGERS_H_
