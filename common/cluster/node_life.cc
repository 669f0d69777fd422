#include "common/cluster/node_life.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/json_fields.h"

namespace gannet {
namespace {

constexpr uint32_t kNodeLifeFormat = 1;

absl::Status NoLife(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

}  // namespace

absl::Status Check(const NodeLife& life) {
  if (life.incarnation == 0) return NoLife("life: no incarnation");
  if (!IsClusterName(life.group)) return NoLife("life: " + WhatNamesAre("group"));
  if (life.applied > kJsonNumberMax) return NoLife("life: applied is too large");
  GANNET_RETURN_IF_ERROR(Check(life.known));
  if (life.known.epoch == 0) return NoLife("life: of a group that nobody has founded");
  return Check(life.map);
}

std::string Encode(const NodeLife& life) {
  GANNET_CHECK(Check(life).ok(), "a sign of life that is none");
  return nlohmann::ordered_json{{"format", kNodeLifeFormat},
                                {"incarnation", HexOf(life.incarnation)},
                                {"group", life.group},
                                {"leads", life.leads},
                                {"applied", life.applied},
                                {"known", nlohmann::ordered_json::parse(Encode(life.known))},
                                {"map", nlohmann::ordered_json::parse(Encode(life.map))},
                                {"policy", nlohmann::ordered_json::parse(Encode(life.policy))}}
      .dump();
}

absl::StatusOr<NodeLife> DecodeNodeLife(std::string_view text) {
  JsonFields fields(text, "life");
  if (const uint32_t format = fields.Number32("format"); format > kNodeLifeFormat) {
    return absl::UnimplementedError(
        absl::StrCat("life: format ", format, " is newer than this version of Gannet, which knows ",
                     kNodeLifeFormat, ". Update it"));
  }
  NodeLife life = {.incarnation = fields.Hex("incarnation"),
                   .group = fields.Text("group"),
                   .leads = fields.Bool("leads"),
                   .applied = fields.Number("applied")};
  const std::string known = fields.ObjectOrNull("known").dump();
  const std::string map = fields.ObjectOrNull("map").dump();
  const std::string policy = fields.ObjectOrNull("policy").dump();
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_ASSIGN_OR_RETURN(life.known, DecodeGroupConfig(known));
  GANNET_ASSIGN_OR_RETURN(life.map, DecodeClusterConfig(map));
  GANNET_ASSIGN_OR_RETURN(life.policy, DecodeGroupPolicy(policy));
  GANNET_RETURN_IF_ERROR(Check(life));
  return life;
}

}  // namespace gannet
