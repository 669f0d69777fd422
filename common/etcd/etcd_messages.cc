#include "common/etcd/etcd_messages.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

using Json = nlohmann::json;

std::string Base64(std::string_view bytes) { return absl::Base64Escape(std::string(bytes)); }

absl::Status NotEtcd(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("no answer of etcd: ", std::string(what)));
}

absl::StatusOr<Json> ParseObject(std::string_view text) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return NotEtcd("no JSON");
  if (!json.is_object()) return NotEtcd("no JSON object");
  return json;
}

// Returns the field, or null if it is left out.
const Json* Field(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

absl::StatusOr<bool> BoolOf(const Json& object, const char* name) {
  const Json* field = Field(object, name);
  if (field == nullptr) return false;
  if (!field->is_boolean()) return NotEtcd(absl::StrCat(name, " is neither true nor false"));
  return field->get<bool>();
}

absl::StatusOr<std::string> TextOf(const Json& object, const char* name) {
  const Json* field = Field(object, name);
  if (field == nullptr) return std::string();
  if (!field->is_string()) return NotEtcd(absl::StrCat(name, " is no string"));
  return field->get<std::string>();
}

// A number of 64 bits, which is a string.
template <class Number>
absl::StatusOr<Number> NumberOf(const Json& object, const char* name) {
  GANNET_ASSIGN_OR_RETURN(const std::string text, TextOf(object, name));
  Number number = 0;
  if (text.empty()) return number;
  if (!absl::SimpleAtoi(text, &number)) return NotEtcd(absl::StrCat(name, " is no number"));
  return number;
}

absl::StatusOr<int64_t> RevisionOf(const Json& object, const char* name) {
  GANNET_ASSIGN_OR_RETURN(const int64_t revision, NumberOf<int64_t>(object, name));
  // One more is the next, so the highest one cannot be.
  if (revision < 0 || revision == std::numeric_limits<int64_t>::max()) {
    return NotEtcd(absl::StrCat(name, " is no revision"));
  }
  return revision;
}

absl::StatusOr<std::string> BytesOf(const Json& object, const char* name) {
  GANNET_ASSIGN_OR_RETURN(const std::string text, TextOf(object, name));
  std::string bytes;
  if (!absl::Base64Unescape(text, &bytes)) return NotEtcd(absl::StrCat(name, " is no Base64"));
  return bytes;
}

// Returns the field, which must be an object. Null if it is left out.
absl::StatusOr<const Json*> ObjectOf(const Json& object, const char* name) {
  const Json* field = Field(object, name);
  if (field != nullptr && !field->is_object()) return NotEtcd(absl::StrCat(name, " is no object"));
  return field;
}

// Returns the field, which must be an array of objects. An empty one if it is left out.
absl::StatusOr<const Json*> ObjectsOf(const Json& object, const char* name) {
  static const Json* const kNone = new Json(Json::array());
  const Json* field = Field(object, name);
  if (field == nullptr) return kNone;
  if (!field->is_array()) return NotEtcd(absl::StrCat(name, " is no array"));
  for (const Json& element : *field) {
    if (!element.is_object()) return NotEtcd(absl::StrCat(name, " has what is no object"));
  }
  return field;
}

absl::StatusOr<EtcdHeader> HeaderOf(const Json& answer) {
  GANNET_ASSIGN_OR_RETURN(const Json* json, ObjectOf(answer, "header"));
  if (json == nullptr) return NotEtcd("no header");
  EtcdHeader header;
  GANNET_ASSIGN_OR_RETURN(header.cluster_id, NumberOf<uint64_t>(*json, "cluster_id"));
  if (header.cluster_id == 0) return NotEtcd("no cluster_id");
  GANNET_ASSIGN_OR_RETURN(header.revision, RevisionOf(*json, "revision"));
  return header;
}

absl::StatusOr<EtcdKeyValue> ItemOf(const Json& json) {
  EtcdKeyValue item;
  GANNET_ASSIGN_OR_RETURN(item.key, BytesOf(json, "key"));
  GANNET_ASSIGN_OR_RETURN(item.value, BytesOf(json, "value"));
  GANNET_ASSIGN_OR_RETURN(item.mod_revision, RevisionOf(json, "mod_revision"));
  if (item.key.empty()) return NotEtcd("an item without a key");
  if (item.mod_revision == 0) return NotEtcd("an item without a mod_revision");
  return item;
}

absl::Status AddItems(const Json& range, std::vector<EtcdKeyValue>* items) {
  GANNET_ASSIGN_OR_RETURN(const bool more, BoolOf(range, "more"));
  if (more) return NotEtcd("a part of a range that was asked for as a whole");
  GANNET_ASSIGN_OR_RETURN(const Json* kvs, ObjectsOf(range, "kvs"));
  for (const Json& kv : *kvs) {
    GANNET_ASSIGN_OR_RETURN(EtcdKeyValue item, ItemOf(kv));
    items->push_back(std::move(item));
  }
  return absl::OkStatus();
}

absl::StatusOr<EtcdChange> ChangeOf(const Json& event) {
  EtcdChange change;
  GANNET_ASSIGN_OR_RETURN(const std::string type, TextOf(event, "type"));
  if (!type.empty() && type != "PUT" && type != "DELETE")
    return NotEtcd("an event of no known type");
  change.deleted = type == "DELETE";
  GANNET_ASSIGN_OR_RETURN(const Json* kv, ObjectOf(event, "kv"));
  if (kv == nullptr) return NotEtcd("an event without a key");
  GANNET_ASSIGN_OR_RETURN(change.item, ItemOf(*kv));
  if (change.deleted) change.item.value.clear();
  return change;
}

Json RangeJson(std::string_view key, bool prefix) {
  Json json = {{"key", Base64(key)}};
  if (prefix) json["range_end"] = Base64(EndOfPrefix(key));
  return json;
}

// Appends what etcd compares. It has no compare for how a value begins, but orders values by their
// bytes.
void AppendCompares(const EtcdTxn::Compare& compare, Json* compares) {
  Json json = RangeJson(compare.key, compare.prefix);
  if (compare.value_begins.empty()) {
    json["target"] = "MOD";
    json["result"] = "EQUAL";
    json["mod_revision"] = absl::StrCat(compare.mod_revision);
    return compares->push_back(std::move(json));
  }
  json["target"] = "VALUE";
  json["result"] = "GREATER";
  json["value"] = Base64(compare.value_begins);
  compares->push_back(json);
  json["result"] = "LESS";
  json["value"] = Base64(EndOfPrefix(compare.value_begins));
  compares->push_back(std::move(json));
}

}  // namespace

std::string EndOfPrefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  GANNET_CHECK(!end.empty(), "a prefix that has no end");
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

std::string EncodeRange(std::string_view key) { return RangeJson(key, false).dump(); }

std::string EncodeRangeOfPrefix(std::string_view prefix) { return RangeJson(prefix, true).dump(); }

std::string EncodeTxn(const EtcdTxn& txn) {
  Json compares = Json::array();
  Json failure = Json::array();
  for (const EtcdTxn::Compare& compare : txn.compares) {
    failure.push_back({{"request_range", RangeJson(compare.key, compare.prefix)}});
    AppendCompares(compare, &compares);
  }
  Json success = Json::array();
  for (const EtcdTxn::Put& put : txn.puts) {
    success.push_back({{"request_put", {{"key", Base64(put.key)}, {"value", Base64(put.value)}}}});
  }
  for (const std::string& key : txn.deletes) {
    success.push_back({{"request_delete_range", RangeJson(key, false)}});
  }
  for (const std::string& key : txn.reads) {
    const Json read = {{"request_range", RangeJson(key, false)}};
    success.push_back(read);
    failure.push_back(read);
  }
  return Json{{"compare", compares}, {"success", success}, {"failure", failure}}.dump();
}

std::string EncodeWatchOfPrefix(std::string_view prefix, int64_t start_revision) {
  Json json = RangeJson(prefix, true);
  json["start_revision"] = absl::StrCat(start_revision);
  return Json{{"create_request", json}}.dump();
}

absl::StatusOr<EtcdRangeAnswer> DecodeRangeAnswer(std::string_view text) {
  GANNET_ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  EtcdRangeAnswer answer;
  GANNET_ASSIGN_OR_RETURN(answer.header, HeaderOf(json));
  GANNET_RETURN_IF_ERROR(AddItems(json, &answer.items));
  return answer;
}

std::string EncodeCompaction(int64_t revision) {
  return Json({{"revision", absl::StrCat(revision)}}).dump();
}

std::string EncodeAuthenticate(std::string_view user, std::string_view password) {
  return Json{{"name", user}, {"password", password}}.dump();
}

absl::StatusOr<std::string> DecodeAuthenticateAnswer(std::string_view text) {
  GANNET_ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  GANNET_ASSIGN_OR_RETURN(std::string token, TextOf(json, "token"));
  const bool odd = std::ranges::any_of(token, [](char c) { return c <= ' ' || c > '~'; });
  if (token.empty() || odd) return NotEtcd("no token");
  return token;
}

absl::StatusOr<EtcdTxnAnswer> DecodeTxnAnswer(std::string_view text) {
  GANNET_ASSIGN_OR_RETURN(const Json json, ParseObject(text));
  EtcdTxnAnswer answer;
  GANNET_ASSIGN_OR_RETURN(answer.header, HeaderOf(json));
  GANNET_ASSIGN_OR_RETURN(answer.succeeded, BoolOf(json, "succeeded"));
  GANNET_ASSIGN_OR_RETURN(const Json* responses, ObjectsOf(json, "responses"));
  for (const Json& response : *responses) {
    GANNET_ASSIGN_OR_RETURN(const Json* range, ObjectOf(response, "response_range"));
    if (range != nullptr) GANNET_RETURN_IF_ERROR(AddItems(*range, &answer.current));
  }
  return answer;
}

absl::StatusOr<EtcdWatchAnswer> DecodeWatchAnswer(std::string_view line) {
  GANNET_ASSIGN_OR_RETURN(const Json json, ParseObject(line));
  GANNET_ASSIGN_OR_RETURN(const Json* result, ObjectOf(json, "result"));
  if (result == nullptr) return NotEtcd("no result");
  EtcdWatchAnswer answer;
  GANNET_ASSIGN_OR_RETURN(answer.header, HeaderOf(*result));
  GANNET_ASSIGN_OR_RETURN(answer.created, BoolOf(*result, "created"));
  GANNET_ASSIGN_OR_RETURN(answer.canceled, BoolOf(*result, "canceled"));
  GANNET_ASSIGN_OR_RETURN(answer.cancel_reason, TextOf(*result, "cancel_reason"));
  GANNET_ASSIGN_OR_RETURN(answer.compact_revision, RevisionOf(*result, "compact_revision"));
  GANNET_ASSIGN_OR_RETURN(const Json* events, ObjectsOf(*result, "events"));
  int64_t revision = 0;
  for (const Json& event : *events) {
    GANNET_ASSIGN_OR_RETURN(EtcdChange change, ChangeOf(event));
    if (change.item.mod_revision < revision) return NotEtcd("changes out of order");
    revision = change.item.mod_revision;
    answer.changes.push_back(std::move(change));
  }
  return answer;
}

}  // namespace gannet
