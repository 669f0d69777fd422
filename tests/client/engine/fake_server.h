#ifndef GANNET_TESTS_CLIENT_ENGINE_FAKE_SERVER_H_
#define GANNET_TESTS_CLIENT_ENGINE_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol/connect.h"
#include "common/protocol/item_leases_reply.h"
#include "common/protocol/message.h"
#include "common/rdma/completion.h"
#include "common/rdma/device.h"
#include "common/rdma/listener.h"
#include "common/rdma/memory.h"
#include "tests/common/lookup/hand_made_region.h"

namespace gannet {

// A server on softverbs that does what a test tells it. It grants a region made by hand, answers
// heartbeats, and leaves every other request to the test. It makes a step only when told to.
class FakeServer {
 public:
  struct Request {
    RequestHeader header;
    std::string key;
    uint64_t connection;
    Opcode opcode() const { return static_cast<Opcode>(header.opcode); }
  };
  // Answers the next requests. nullopt: does not answer, for ever.
  using Answer = std::function<std::optional<ReplyHeader>(const Request&)>;

  FakeServer();
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string endpoint() const;
  void Step();

  // Returns a reply to the request with nothing but a status.
  static ReplyHeader ReplyTo(const Request& request, ReplyStatus status = ReplyStatus::kOk);
  // Answers a request that `answer` left unanswered.
  void AnswerNow(const Request& request, ReplyStatus status);
  void AnswerNow(const Request& request, const ReplyHeader& reply);
  // Sends the value with the answers.
  void set_value(std::string value) { value_ = std::move(value); }

  // The grant for clients that connect from now on, except for what differs with each connection.
  Grant& grant() { return grant_; }
  // The last that is done to a grant before it is sent.
  std::function<void(const ConnectRequest&, Grant*)> alter_grant;
  Answer answer;
  bool answers_heartbeats = true;
  std::function<uint64_t()> time_ms = [] { return uint64_t{1'000'000}; };
  // What grants and heartbeats' replies tell of the primary's lease. REQUIRES: 0 without a history.
  std::function<uint16_t()> lease_left_ms = [] { return uint16_t{0}; };
  // What heartbeats' replies tell of the maps for which the lease holds.
  uint64_t leases_from = 0;
  // The map of its cluster, which it tells; empty: it knows none. Requests for it are not among
  // requests().
  std::string map;
  // Refuses clients with code 8, for this reason.
  std::optional<std::string> not_primary;

  // Leases items from now on, to clients that connect later: memory for so many words, and a
  // header. The test writes both, as a server's ItemLeases does.
  void LeaseItems(uint32_t words, uint32_t lease_ms);
  void SetLeaseHeader(uint64_t generation, uint64_t end_ms);
  void SetLeaseWord(uint32_t place, uint64_t word);
  // How often it was asked where that is.
  uint32_t asked_for_leases() const { return asked_for_leases_; }

  HandMadeRegion& region() { return region_; }
  // Publishes what was written into the region by hand.
  void PublishRegion();
  uint64_t lock_word(uint64_t i) const;
  void set_lock_word(uint64_t i, uint64_t word);

  const std::vector<Request>& requests() const { return requests_; }
  size_t Count(Opcode opcode) const;
  uint32_t heartbeats() const { return heartbeats_; }
  // How often it was asked for the map.
  uint32_t asked_for_map() const { return asked_for_map_; }
  // How many first queue pairs were accepted so far, and how many requests refused.
  uint32_t connections() const { return accepted_; }
  uint32_t refused() const { return refused_; }
  // Breaks all connections, as the death of its process would.
  void BreakAll();

 private:
  struct Peer;
  void Accept(IncomingRequest incoming);
  void OnCompletion(const ibv_wc& completion);
  void OnRequest(Peer& peer, std::span<const std::byte> message);
  void TellMap(Peer& peer, const Request& request);
  void Send(Peer& peer, const ReplyHeader& reply, std::string_view value);
  void TellItemLeases(Peer& peer, const Request& request);
  void PostReceive(Peer& peer, uint32_t slot);

  const Device device_;
  HandMadeRegion region_;
  Handle<ibv_pd> pd_;
  std::unique_ptr<CompletionQueue> cq_;
  RegisteredBuffer memory_;
  std::optional<SharedMemory> locks_;
  Handle<ibv_mr> locks_mr_;
  std::unique_ptr<Listener> listener_;
  std::map<uint64_t, std::unique_ptr<Peer>> peers_;
  Grant grant_;
  std::vector<Request> requests_;
  std::string value_;
  uint32_t heartbeats_ = 0;
  uint32_t asked_for_map_ = 0;
  RegisteredBuffer leases_;
  ItemLeasesReply item_leases_{};
  uint32_t asked_for_leases_ = 0;
  uint32_t accepted_ = 0;
  uint32_t refused_ = 0;
  uint64_t next_connection_ = 1;
};

}  // namespace gannet

#endif  // GANNET_TESTS_CLIENT_ENGINE_FAKE_SERVER_H_
