// Takes what clients report with heartbeats, publishes the list of this worker's clients, and
// answers the requests that only ask. Lists come in pieces, from a position on.

#include "server/rpc/observation.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/boot_time.h"
#include "common/base/check.h"
#include "common/protocol/rails_reply.h"
#include "common/protocol/touch.h"
#include "server/rpc/dispatcher.h"

namespace gannet {
namespace {

constexpr size_t kGets = static_cast<size_t>(LatencyKind::kGet);

uint32_t Clip(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, std::numeric_limits<uint32_t>::max()));
}

uint32_t MsBetween(BootTime from, BootTime to) {
  return Clip(static_cast<uint64_t>(std::max<int64_t>(to - from, 0) / kNsPerMs));
}

// Copies entries from `position` on, as many as there is room for. Returns the position to go on
// from, or 0 if these were the last.
template <class Entry>
uint64_t CopyEntries(const std::vector<Entry>& entries, uint64_t position,
                     std::span<std::byte> value_out, uint32_t* bytes) {
  const size_t begin = static_cast<size_t>(std::min<uint64_t>(position, entries.size()));
  const size_t n = std::min(entries.size() - begin, value_out.size() / sizeof(Entry));
  *bytes = static_cast<uint32_t>(n * sizeof(Entry));
  if (n > 0) std::memcpy(value_out.data(), entries.data() + begin, *bytes);
  return begin + n < entries.size() ? begin + n : 0;
}

// Returns the number of a rail's port, counted over the ports of all rails from 1.
uint8_t PortNumberOf(std::span<const Rail> rails, size_t rail) {
  const auto first = std::ranges::find_if(rails, [&](const Rail& it) {
    return it.device.verbs == rails[rail].device.verbs && it.port == rails[rail].port;
  });
  return static_cast<uint8_t>(first - rails.begin() + 1);
}

}  // namespace

bool Observation::TakeNews(Session* session, const RequestView& heartbeat) {
  const size_t report_bytes = heartbeat.header.heartbeat.report_bytes;
  if (report_bytes > 0) {
    const auto report = ClientReportView::Decode(heartbeat.value.substr(0, report_bytes));
    if (!report) return false;
    TakeReport(session, *report);
  }
  const std::string_view touches = heartbeat.value.substr(report_bytes);
  if (touches.empty()) return true;
  Store& store = context_.server.store;
  if (store.leases() != nullptr) {
    uint64_t uses = 0;
    ForEachTouch(touches, [&uses](Touch touch) { uses += touch.uses(); });
    session->told_uses.OnTold(uses);
  }
  store.NoteTouches(touches, session->told_uses.each());
  return true;
}

void Observation::TakeLastNews(Session* session, std::span<const std::byte> message) {
  RequestView request;
  if (message.size() < sizeof(RequestHeader) || DecodeRequest(message, &request)) return;
  const bool heartbeat = request.header.opcode == static_cast<uint8_t>(Opcode::kHeartbeat);
  if (heartbeat && !request.value.empty()) TakeNews(session, request);
}

void Observation::TakeReport(Session* session, const ClientReportView& report) {
  const ClientCounts& counts = report.counts;
  context_.counters.client_hits.Add(counts.hits);
  context_.counters.client_misses.Add(counts.misses);
  context_.counters.client_reads.Add(counts.reads);
  context_.counters.client_gets_by_rpc.Add(counts.by_rpc);
  session->reported.hits += counts.hits;
  session->told_uses.OnHits(counts.hits);
  session->reported.misses += counts.misses;
  session->reported.reads += counts.reads;
  std::array<uint32_t, LatencyBucket::kCount> gets{};
  report.ForEachLatency([&](LatencyCount it) {
    context_.counters.client_latencies[it.kind()][it.bucket()].Add(it.count());
    if (it.kind() == kGets) gets[it.bucket()] = it.count();
  });
  const auto count = [&gets](size_t bucket) { return gets[bucket]; };
  const uint64_t p50_ns = LatencyQuantileNs(0.50, count);
  if (p50_ns == 0) return;
  session->reported.get_p50_ns = Clip(p50_ns);
  session->reported.get_p99_ns = Clip(LatencyQuantileNs(0.99, count));
}

void Observation::PublishClients() const {
  std::vector<ClientEntry> entries;
  entries.reserve(context_.connections.size());
  for (const auto& [id, connection] : context_.connections) {
    if (!connection->closing) entries.push_back(EntryOf(*connection));
  }
  std::ranges::sort(entries, {}, &ClientEntry::connection_id);
  context_.server.board.Publish(context_.index, std::move(entries), context_.now.boot);
}

ClientEntry Observation::EntryOf(const ServerConnection& connection) const {
  const Session& session = *connection.session;
  ClientEntry entry{};
  if (const auto holder = context_.server.connection_ids.HolderOf(connection.id)) {
    std::ranges::copy(holder->peer, entry.peer);
  }
  entry.session_id = session.id();
  entry.connection_id = connection.id;
  entry.qp_index = connection.qp_index;
  entry.worker = static_cast<uint16_t>(context_.index);
  entry.read_only = session.read_only();
  entry.unanswered = static_cast<uint16_t>(connection.unanswered);
  entry.key_id = session.key == nullptr ? 0 : session.key->key.id;
  entry.silent_ms = MsBetween(connection.heard, context_.now.boot);
  entry.connected_ms = MsBetween(connection.since, context_.now.boot);
  if (connection.qp_index != 0) return entry;
  entry.last_opcode = session.last_opcode();
  entry.requests = session.highest();
  entry.hits = session.reported.hits;
  entry.misses = session.reported.misses;
  entry.reads = session.reported.reads;
  entry.get_p50_ns = session.reported.get_p50_ns;
  entry.get_p99_ns = session.reported.get_p99_ns;
  return entry;
}

// A piece of a map that changed meanwhile does not fit the others, which the client sees by the
// checksum.
ReplyHeader Observation::Map(const RequestHeader& header, std::span<std::byte> value_out) const {
  const std::shared_ptr<const std::string> map =
      context_.server.standing == nullptr ? nullptr : context_.server.standing->map();
  if (map == nullptr) return ReplyTo(header, ReplyStatus::kNotFound);
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  const size_t from = std::min<uint64_t>(header.list.position, map->size());
  const size_t bytes = std::min(map->size() - from, value_out.size());
  std::memcpy(value_out.data(), map->data() + from, bytes);
  reply.value_bytes = static_cast<uint32_t>(bytes);
  reply.list.next = from + bytes < map->size() ? from + bytes : 0;
  return reply;
}

ReplyHeader Observation::Rails(const ServerConnection& connection, const RequestHeader& header,
                               std::span<std::byte> value_out) const {
  const ServerContext& server = context_.server;
  if (server.rails.size() == 1) return ReplyTo(header, ReplyStatus::kNotFound);
  RailsReply rails{};
  rails.count = static_cast<uint8_t>(server.rails.size());
  rails.lock_rail = static_cast<uint8_t>(server.lock_rail_number.load(std::memory_order_relaxed));
  rails.own_rail = connection.rail;
  for (size_t i = 0; i < server.rails.size(); ++i) {
    RailEntry& entry = rails.rails[i];
    const auto address = server.rails[i].address.NetworkBytes();
    std::memcpy(entry.address.data(), address.data(), entry.address.size());
    entry.port = server.rails[i].address.port();
    const RailBoard::Seen seen = server.rail_board.Of(i);
    entry.mtu_bytes = seen.mtu_bytes;
    entry.mbit_per_second = seen.mbit_per_second;
    entry.state = static_cast<uint8_t>(seen.state);
    entry.port_number = PortNumberOf(server.rails, i);
    entry.connections = server.rail_board.ConnectionsOf(i);
  }
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  reply.value_bytes = static_cast<uint32_t>(rails.Bytes());
  std::memcpy(value_out.data(), &rails, rails.Bytes());
  return reply;
}

ReplyHeader Observation::List(const ServerConnection& connection, const RequestHeader& header,
                              std::span<std::byte> value_out) const {
  GANNET_CHECK(value_out.size() >= sizeof(StatsReply), "no room for a list");
  if (header.opcode == static_cast<uint8_t>(Opcode::kMap)) return Map(header, value_out);
  if (header.opcode == static_cast<uint8_t>(Opcode::kRails))
    return Rails(connection, header, value_out);
  if (header.opcode == static_cast<uint8_t>(Opcode::kListLocks)) {
    return lock_words_.List(header, value_out);
  }
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  const uint64_t from = header.list.position;
  const Rail& rail = context_.server.rails[connection.rail];
  if (header.opcode == static_cast<uint8_t>(Opcode::kStats)) {
    const StatsReply stats = context_.server.control.Stats(context_.now);
    reply.value_bytes = sizeof(stats);
    std::memcpy(value_out.data(), &stats, sizeof(stats));
  } else if (header.opcode == static_cast<uint8_t>(Opcode::kStorage)) {
    StorageReply storage{};
    const bool begins = header.storage.ask == static_cast<uint64_t>(StorageAsk::kSnapshot);
    reply.storage.snapshot = context_.server.control.Storage(begins, &storage);
    reply.value_bytes = sizeof(storage);
    std::memcpy(value_out.data(), &storage, sizeof(storage));
  } else if (header.opcode == static_cast<uint8_t>(Opcode::kHeats)) {
    reply.value_bytes = sizeof(rail.heats);
    std::memcpy(value_out.data(), &rail.heats, sizeof(rail.heats));
  } else if (header.opcode == static_cast<uint8_t>(Opcode::kItemLeases)) {
    reply.value_bytes = sizeof(rail.item_leases);
    std::memcpy(value_out.data(), &rail.item_leases, sizeof(rail.item_leases));
  } else if (header.opcode == static_cast<uint8_t>(Opcode::kListClients)) {
    reply.list.next = CopyEntries(context_.server.board.All(), from, value_out, &reply.value_bytes);
  } else if (context_.server.slow_log) {
    reply.list.next =
        CopyEntries(context_.server.slow_log->Entries(), from, value_out, &reply.value_bytes);
  }
  return reply;
}

void Observation::NoteServerSet(const ServerConnection& connection, uint64_t server_set) {
  Session* const session = connection.session;
  if (server_set == 0 || server_set == session->server_set) return;
  session->server_set = server_set;
  const auto holder = context_.server.connection_ids.HolderOf(connection.id);
  const char* const peer = holder->peer.data();
  context_.server.server_sets.Tell(session->id(), server_set,
                                   std::string(peer, strnlen(peer, holder->peer.size())));
}

}  // namespace gannet
