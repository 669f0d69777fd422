// Redis' commands about the connection and the server.

#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proxy/jobs/client_list.h"
#include "proxy/jobs/glob.h"
#include "proxy/jobs/passwords.h"
#include "proxy/jobs/redis_commands.h"

namespace gannet::proxy::redis {
namespace {

// The version that libraries and tools compare. The commands that exist here are those of this
// version.
constexpr char kRedisVersion[] = "7.0.0";

constexpr char kBadName[] =
    "ERR Client names cannot contain spaces, newlines or special characters.";

void SayHello(Job& job) {
  RespReply reply = Reply(job);
  reply.Map(7);
  reply.Bulk("server");
  reply.Bulk("redis");
  reply.Bulk("version");
  reply.Bulk(kRedisVersion);
  reply.Bulk("proto");
  reply.Integer(job.resp3 ? 3 : 2);
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(job.client->id));
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk("master");
  reply.Bulk("modules");
  reply.Array(0);
}

// What others see of this client.
void ShowChange(const Job& job) { job.service->clients->Change(*job.client); }

// A line of CLIENT LIST has no blanks in a name.
bool IsName(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// Returns false, and replies, if the password is not that user's. Without passwords, the user
// `default` may have any, as in Redis.
bool Authenticate(Job& job, std::string_view user, std::string_view password) {
  const Passwords* passwords = job.service->passwords;
  const bool fits = passwords == nullptr ? user == "default" : passwords->Fit(user, password);
  if (!fits) {
    Fail(job, "WRONGPASS invalid username-password pair or user is disabled.");
    return false;
  }
  job.client->authenticated = true;
  return true;
}

// CLIENT KILL ADDRESS, or CLIENT KILL with filters.
void Kill(Job& job) {
  const auto& words = job.words();
  ClientList& clients = *job.service->clients;
  ClientList::Filter filter{.skipped = job.client->id};
  const bool is_old_form = words.size() == 3;
  if (is_old_form) filter = {.address = words[2]};
  for (size_t i = 2; !is_old_form && i < words.size(); i += 2) {
    const std::string name = Upper(words[i]);
    if (i + 1 == words.size()) return SyntaxError(job);
    const std::string_view value = words[i + 1];
    uint64_t id = 0;
    if (name == "ID" && ParseNumber(value, &id)) {
      filter.id = id;
    } else if (name == "ADDR") {
      filter.address = value;
    } else if (name == "SKIPME" && Upper(value) == "NO") {
      filter.skipped = 0;
    } else if (!(name == "SKIPME" && Upper(value) == "YES") &&
               !(name == "TYPE" && Upper(value) == "NORMAL")) {
      return SyntaxError(job);
    }
  }
  bool with_own = false;
  const size_t count = clients.End(filter, job.client->id, &with_own);
  if (with_own) job.client->closing = true;  // behind the answer
  if (!is_old_form) return Reply(job).Integer(static_cast<int64_t>(count));
  count > 0 ? Reply(job).Simple("OK") : Fail(job, "ERR No such client");
}

void InfoTold(Job& job) {
  const Service& service = *job.service;
  std::string text = absl::StrCat(
      "# Server\r\nredis_version:", kRedisVersion, "\r\nredis_mode:standalone\r\n",
      "gannet_proxy_version:", service.version, "\r\nprocess_id:", getpid(),
      "\r\nuptime_in_seconds:", std::time(nullptr) - service.started, "\r\n\r\n# Clients\r\n",
      "connected_clients:", service.Sum(&Counters::connections),
      "\r\nmaxclients:", service.connections_max, "\r\n\r\n");
  const uint64_t gets = service.Sum(&Counters::gets);
  const uint64_t hits = service.Sum(&Counters::hits);
  ServerStats sum;
  uint64_t unreachable = 0;
  for (const Operation& asked : job.answers()) {
    if (asked.code != absl::StatusCode::kOk) ++unreachable;
    sum.items += asked.stats.items;
    sum.items_expiring += asked.stats.items_expiring;
    sum.heap_bytes += asked.stats.heap_bytes;
    sum.items_evicted += asked.stats.items_evicted;
    sum.items_expired += asked.stats.items_expired;
    sum.rpcs += asked.stats.rpcs;
  }
  text += absl::StrCat(
      "# Memory\r\nused_memory:", sum.heap_bytes,
      "\r\ngannet_buffer_bytes:", service.memory->taken(),
      "\r\ngannet_buffer_bytes_max:", service.memory->max(),
      "\r\n\r\n# Stats\r\ntotal_connections_received:", service.Sum(&Counters::connections_made),
      "\r\ntotal_commands_processed:", service.Commands(), "\r\nkeyspace_hits:", hits,
      "\r\nkeyspace_misses:", gets - std::min(gets, hits), "\r\nexpired_keys:", sum.items_expired,
      "\r\nevicted_keys:", sum.items_evicted, "\r\n\r\n");
  text += absl::StrCat("# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n",
                       "# Gannet\r\ngannet_servers:", service.servers.size(),
                       "\r\ngannet_servers_unreachable:", unreachable, "\r\ngannet_rpcs:", sum.rpcs,
                       "\r\n\r\n# Keyspace\r\n");
  // Redis says 0 as well where it does not know how long items have to live.
  if (sum.items > 0) {
    text += absl::StrCat("db0:keys=", sum.items, ",expires=", sum.items_expiring, ",avg_ttl=0\r\n");
  }
  Reply(job).Text(text);
}

void Info(Job& job) {
  job.BeginOnEach(Operation::Kind::kStats);
  job.Then(InfoTold);
}

// A number cannot say that servers are missing from it. INFO can.
void DbSizeTold(Job& job) {
  uint64_t items = 0;
  bool any = false;
  for (const Operation& asked : job.answers()) {
    if (asked.code != absl::StatusCode::kOk) continue;
    any = true;
    items += asked.stats.items;
  }
  if (!any) return Fail(job, job.answer());
  Reply(job).Integer(static_cast<int64_t>(items));
}

void DbSize(Job& job) {
  job.BeginOnEach(Operation::Kind::kStats);
  job.Then(DbSizeTold);
}

}  // namespace

void PreparePing(Job& job) {
  if (job.words().size() == 1) return Reply(job).Simple("PONG");
  Reply(job).Bulk(job.words()[1]);
}

void PrepareEcho(Job& job) { Reply(job).Bulk(job.words()[1]); }

void PrepareHello(Job& job) {
  const auto& words = job.words();
  bool resp3 = job.resp3;
  std::string name = job.client->name;
  if (words.size() > 1) {
    if (words[1] != "2" && words[1] != "3")
      return Fail(job, "NOPROTO unsupported protocol version");
    resp3 = words[1] == "3";
  }
  for (size_t i = 2; i < words.size(); i += 2) {
    const std::string option = Upper(words[i]);
    if (option == "AUTH" && i + 2 < words.size()) {
      if (!Authenticate(job, words[i + 1], words[i + 2])) return;
      ++i;
      continue;
    }
    if (option != "SETNAME" || i + 1 == words.size()) return SyntaxError(job);
    name.assign(words[i + 1]);
    if (!IsName(name)) return Fail(job, kBadName);
  }
  if (!job.client->authenticated) {
    return Fail(
        job,
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the "
        "HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and "
        "select the RESP protocol version at the same time");
  }
  job.client->resp3 = job.resp3 = resp3;
  job.client->name = name;
  ShowChange(job);
  SayHello(job);
}

void PrepareClient(Job& job) {
  const auto& words = job.words();
  const std::string what = Upper(words[1]);
  if (what == "ID") return Reply(job).Integer(static_cast<int64_t>(job.client->id));
  if (what == "GETNAME") {
    return job.client->name.empty() ? Reply(job).Null() : Reply(job).Bulk(job.client->name);
  }
  if (what == "SETNAME" && words.size() == 3) {
    if (!IsName(words[2])) return Fail(job, kBadName);
    job.client->name.assign(words[2].substr(0, 64));
    ShowChange(job);
    return Reply(job).Simple("OK");
  }
  // A library tells of itself, or asks for what holds here anyway.
  if ((what == "SETINFO" && words.size() == 4) || what == "NO-EVICT" || what == "NO-TOUCH") {
    return Reply(job).Simple("OK");
  }
  if (what == "INFO") return Reply(job).Text(job.service->clients->Line(job.client->id));
  if (what == "KILL" && words.size() > 2) return Kill(job);
  if (what == "LIST") return Reply(job).Text(job.service->clients->Lines());
  Fail(job, "ERR this subcommand of CLIENT is not supported");
}

void PrepareCommand(Job& job) {
  const auto& words = job.words();
  if (words.size() == 1) return Reply(job).Array(0);
  const std::string what = Upper(words[1]);
  if (what == "COUNT") return Reply(job).Integer(0);
  if (what == "DOCS") return Reply(job).Map(0);
  Reply(job).Array(0);
}

// What redis-benchmark and agents that watch Redis ask for. `maxclients` is the proxy's own.
void PrepareConfig(Job& job) {
  const auto& words = job.words();
  if (Upper(words[1]) != "GET" || words.size() < 3) {
    return Fail(job, "ERR CONFIG can only GET here");
  }
  const std::pair<std::string, std::string> all[] = {
      {"appendonly", "no"},
      {"databases", absl::StrCat(job.service->databases)},
      {"maxclients", absl::StrCat(job.service->connections_max)},
      {"maxmemory", "0"},
      {"maxmemory-policy", "noeviction"},
      {"save", ""},
      {"slowlog-log-slower-than", "-1"},
      {"slowlog-max-len", "0"},
      {"timeout", "0"},
  };
  const auto is_asked = [&](const std::string& name) {
    return std::any_of(words.begin() + 2, words.end(), [&](std::string_view pattern) {
      return GlobMatches(absl::AsciiStrToLower(Upper(pattern)), name);
    });
  };
  RespReply reply = Reply(job);
  reply.Map(static_cast<size_t>(std::count_if(
      std::begin(all), std::end(all), [&](const auto& one) { return is_asked(one.first); })));
  for (const auto& [name, value] : all) {
    if (!is_asked(name)) continue;
    reply.Bulk(name);
    reply.Bulk(value);
  }
}

// Nothing is logged here: `kvcli slowlog` shows the servers' slow requests.
void PrepareSlowLog(Job& job) {
  const std::string what = Upper(job.words()[1]);
  if (what == "GET") return Reply(job).Array(0);
  if (what == "LEN") return Reply(job).Integer(0);
  if (what == "RESET") return Reply(job).Simple("OK");
  Fail(job, "ERR of SLOWLOG there are GET, LEN and RESET");
}

// Nothing is recorded here: `kvcli latency` measures.
void PrepareLatency(Job& job) {
  const std::string what = Upper(job.words()[1]);
  if (what == "LATEST" || what == "HISTORY") return Reply(job).Array(0);
  if (what == "HISTOGRAM") return Reply(job).Map(0);
  if (what == "RESET") return Reply(job).Integer(0);
  Fail(job, "ERR of LATENCY there are LATEST, HISTORY, HISTOGRAM and RESET");
}

bool TakeDatabase(Job& job, std::string_view word, Database* database) {
  int64_t number = 0;
  if (!ParseInteger(word, &number)) return Fail(job, kNoInteger), false;
  if (number < 0 || number >= job.service->databases) {
    Fail(job, absl::StrCat("ERR DB index is out of range: gannet-proxy --databases=",
                           job.service->databases));
    return false;
  }
  database->number = static_cast<uint8_t>(number);
  return true;
}

void PrepareSelect(Job& job) {
  if (!TakeDatabase(job, job.words()[1], &job.client->database)) return;
  ShowChange(job);
  Reply(job).Simple("OK");
}

void PrepareSwapDb(Job& job) {
  Fail(job, "ERR SWAPDB is not supported: the store would have to rename each key");
}

void PrepareQuit(Job& job) {
  job.client->closing = true;
  Reply(job).Simple("OK");
}

void PrepareReset(Job& job) {
  job.client->resp3 = job.resp3 = false;
  job.client->name.clear();
  job.client->transaction = {};
  job.client->database.number = 0;
  job.client->authenticated = job.service->passwords == nullptr;
  ShowChange(job);
  Reply(job).Simple("RESET");
}

void PrepareAuth(Job& job) {
  const auto& words = job.words();
  if (words.size() == 3) {
    if (Authenticate(job, words[1], words[2])) Reply(job).Simple("OK");
    return;
  }
  if (job.service->passwords != nullptr) {
    if (Authenticate(job, "default", words[1])) Reply(job).Simple("OK");
    return;
  }
  Fail(job,
       "ERR AUTH <password> called without any password configured for the default user. Are you "
       "sure your configuration is correct?");
}

void PrepareTime(Job& job) {
  using std::chrono::system_clock;
  const auto now =
      std::chrono::duration_cast<std::chrono::microseconds>(system_clock::now().time_since_epoch())
          .count();
  RespReply reply = Reply(job);
  reply.Array(2);
  reply.Bulk(absl::StrCat(now / 1'000'000));
  reply.Bulk(absl::StrCat(now % 1'000'000));
}

void PrepareInfo(Job& job) { job.Then(Info); }
void PrepareDbSize(Job& job) {
  job.scratch.database = job.client->database;
  job.Then(job.service->databases == 1 ? DbSize : CountKeys);
}

}  // namespace gannet::proxy::redis
