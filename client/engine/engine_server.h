#ifndef GANNET_CLIENT_ENGINE_ENGINE_SERVER_H_
#define GANNET_CLIENT_ENGINE_ENGINE_SERVER_H_

#include <gannet/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "client/engine/large_items.h"
#include "client/engine/near_cache.h"
#include "client/engine/request_queue.h"
#include "client/session/client_session.h"
#include "client/session/fixed_ring.h"
#include "client/tables/location_cache.h"
#include "client/tables/lock_table.h"
#include "common/layout/item.h"

namespace gannet {

// What an Engine keeps of one server.
struct alignas(64) EngineServer {
  // `ops`: how many operations there may be.
  EngineServer(uint64_t for_cache, uint32_t ops, std::unique_ptr<ClientSession> s)
      : cache(for_cache),
        large(for_cache / kLargeItemsShare),
        short_heads(for_cache / kLargeItemsShare),
        session(std::move(s)),
        ordered(4 * ops),
        requests(ops),
        cache_bytes(for_cache) {}

  // Large items may take so much memory beside the location cache: a quarter of it. With a location
  // cache of 1 MiB these are 4,096 heads for 65,536 locations.
  static constexpr uint64_t kLargeItemsShare = 4;

  LocationCache cache;
  LargeItems large;
  // Heads of items that are not large, as Exists and GetIfChanged found them. Apart from `large`,
  // because a GET takes whatever it finds there for a large item's.
  LargeItems short_heads;
  TouchLog* touches = nullptr;            // the session's, if the server wants to know what is READ
  std::unique_ptr<NearCache> near_cache;  // if Options::near_cache_bytes is not 0
  LockTable locks;
  std::unique_ptr<ClientSession> session;
  // What waits to be sent to it, except READs.
  FixedRing<OrderedWork> ordered;
  RequestQueue requests;
  bool wants_buffer = false;  // the first request waits for a buffer to lend
  uint64_t cache_bytes;       // of the location cache
  int64_t away_since_ns = 0;  // when OnLost came first; 0: it is ready

  // Asks the server anew which rails it has, if it has several: ServerInfo::rails tell of their
  // states and connections.
  void AskForRails() {
    if (session->rails().all().several()) session->requests().AskForRails(RailsAsk::kRails);
  }
  // Returns whether the server may keep locks of `locks` until the session is ready again.
  bool MayKeepLocks() const {
    return session->terms().may_keep_locks && !session->dead() && locks.connection_id() != 0;
  }

  bool HasQueued() const { return !ordered.empty() || !requests.empty(); }
  // Returns whether anything of that can be sent now.
  bool CanSendQueued() const {
    using enum RequestQueue::Line;
    const SessionRequests& sent = session->requests();
    const bool gets_go = !requests.empty(kGets) && sent.RoomForGets() > 0;
    const bool some_go = gets_go || !requests.empty(kOthers);
    return session->sends().CanSend() &&
           (!ordered.empty() || (some_go && !wants_buffer && sent.CanSend()));
  }

  // Returns whether the item may be past its expiry. `now_ns` may be when the operation began: an
  // item that was alive then is a right answer.
  bool PastExpiry(const ItemHeader& header, int64_t now_ns) const {
    const Expiry expiry = header.expiry();
    return !expiry.never() &&
           !session->heartbeats().server_time().SurelyBefore(expiry.time(), now_ns);
  }
  // Returns whether the item was surely past its expiry at `read_ns`, a time at which it was still
  // to be READ. Then the READ found the key absent.
  bool SurelyPastExpiry(const ItemHeader& header, int64_t read_ns) const {
    const Expiry expiry = header.expiry();
    return !expiry.never() &&
           session->heartbeats().server_time().SurelyPast(expiry.time(), read_ns);
  }
  // Returns how long an item lives at least that expires then. 0: perhaps that time has come.
  std::chrono::milliseconds TtlLeft(ServerTime expires, int64_t now_ns) const {
    return std::chrono::milliseconds(session->heartbeats().server_time().LeftMs(expires, now_ns));
  }
  // Returns what a caller is told of an item.
  ItemInfo MakeItemInfo(const ItemHeader& header, int64_t now_ns) const {
    const Expiry expiry = header.expiry();
    ItemInfo info{header.version, header.flags, expiry.ms(), header.value_bytes};
    if (!expiry.never()) info.ttl_left = TtlLeft(expiry.time(), now_ns);
    return info;
  }
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_ENGINE_SERVER_H_
