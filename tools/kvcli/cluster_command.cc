#include "tools/kvcli/cluster_command.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/command_options.h"
#include "tools/kvcli/nearest.h"

namespace gannet::kvcli {
namespace {

using Action = ClusterCommand::Action;

struct ActionSpec {
  Action action;
  std::string_view name;
  size_t words;  // behind the name: a group, or a group and a node
};
constexpr std::array<ActionSpec, 6> kActions = {{{Action::kInit, "init", 0},
                                                 {Action::kStatus, "status", 0},
                                                 {Action::kHandOver, "handover", 2},
                                                 {Action::kAdd, "add", 2},
                                                 {Action::kRemove, "remove", 2},
                                                 {Action::kForce, "force", 1}}};

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

absl::Status ApplyGroup(std::string_view value, ClusterCommand* command) {
  const size_t colon = value.find(':');
  ClusterCommand::Group group = {.name = std::string(value.substr(0, colon))};
  if (colon != std::string_view::npos) {
    group.members = absl::StrSplit(std::string(value.substr(colon + 1)), ',', absl::SkipEmpty());
  }
  if (group.name.empty() || group.members.empty()) {
    return Wrong("--group is a group's name and its members: g1:n1,n2,n3");
  }
  command->groups.push_back(std::move(group));
  return absl::OkStatus();
}

template <class T>
absl::Status ApplyNumber(std::string_view name, std::string_view value, std::optional<T>* out) {
  if (ParseNumber(value, &out->emplace())) return absl::OkStatus();
  return Wrong(absl::StrCat("--", std::string(name), " needs a number"));
}

absl::Status ApplyText(std::string_view name, std::string_view value, std::string* out) {
  *out = value;
  if (!out->empty()) return absl::OkStatus();
  return Wrong(absl::StrCat("--", std::string(name), " needs a value"));
}

absl::Status NoAction(const std::string& word) {
  std::vector<std::string> known;
  for (const ActionSpec& spec : kActions) known.emplace_back(spec.name);
  const std::string nearest = Nearest(word, known);
  return Wrong(absl::StrCat("'", word, "' is no ACTION",
                            nearest.empty() ? "" : absl::StrCat("; did you mean ", nearest, "?")));
}

absl::Status CheckOptions(const ClusterCommand& command) {
  if (command.etcd.empty()) {
    return Wrong(
        "--etcd=URL[,URL...] is missing: where etcd is, http://127.0.0.1:2379 for example");
  }
  if (command.cluster.empty()) return Wrong("--cluster=NAME is missing");
  GANNET_RETURN_IF_ERROR(Check(command.etcd_access));
  const bool init = command.action == Action::kInit;
  if (init && command.groups.empty()) return Wrong("init needs --group=GROUP:NODE,NODE...");
  const bool has_terms =
      !command.groups.empty() || command.lease_ms || command.min_copies || command.ring_bytes;
  if (!init && (has_terms || command.if_missing)) {
    return Wrong("--group, --lease_ms, --min_copies, --ring_bytes and --if_missing are for init");
  }
  const bool force = command.action == Action::kForce;
  if (!force && (!command.from.empty() || command.lose_data)) {
    return Wrong("--from and --lose-data are for force");
  }
  if (force && command.from.empty()) return Wrong("force needs --from=NODE, whose items are kept");
  if (force && !command.lose_data) {
    return Wrong(
        "force may lose writes that were acknowledged, so it needs --lose-data. First look at "
        "kvcli cluster status for the node that has applied most, and make sure that the former "
        "primary's machine is off: alone, it would go on serving");
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<absl::Status> ApplyClusterOption(std::string_view name, std::string_view value,
                                               ClusterCommand* command) {
  if (name == "etcd") {
    command->etcd = absl::StrSplit(std::string(value), ',', absl::SkipEmpty());
    return command->etcd.empty() ? Wrong("--etcd needs a URL") : absl::OkStatus();
  }
  EtcdAccess* const access = &command->etcd_access;
  if (name == "etcd_ca_file") return ApplyText(name, value, &access->ca_file);
  if (name == "etcd_cert_file") return ApplyText(name, value, &access->cert_file);
  if (name == "etcd_key_file") return ApplyText(name, value, &access->key_file);
  if (name == "etcd_user") return ApplyText(name, value, &access->user);
  if (name == "etcd_password_file") return ApplyText(name, value, &access->password_file);
  if (name == "cluster") return ApplyText(name, value, &command->cluster);
  if (name == "group") return ApplyGroup(value, command);
  if (name == "lease_ms") return ApplyNumber(name, value, &command->lease_ms);
  if (name == "min_copies") return ApplyNumber(name, value, &command->min_copies);
  if (name == "ring_bytes") return ApplyNumber(name, value, &command->ring_bytes);
  if (name == "from") return ApplyText(name, value, &command->from);
  return std::nullopt;
}

absl::Status TakeClusterWords(std::span<const std::string> words, ClusterCommand* command) {
  if (words.empty()) return Wrong("ACTION is missing");
  const auto spec = std::ranges::find(kActions, words[0], &ActionSpec::name);
  if (spec == kActions.end()) return NoAction(words[0]);
  command->action = spec->action;
  const std::span<const std::string> rest = words.subspan(1);
  if (rest.size() < spec->words) {
    return Wrong(absl::StrCat(words[0], rest.empty() ? " needs a GROUP" : " needs a NODE"));
  }
  if (rest.size() > spec->words) {
    return Wrong(absl::StrCat("'", rest[spec->words], "' is one word too many"));
  }
  if (!rest.empty()) command->group = rest[0];
  if (rest.size() > 1) command->node = rest[1];
  return CheckOptions(*command);
}

}  // namespace gannet::kvcli
