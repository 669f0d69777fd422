#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "tools/kvcli/command.h"

namespace gannet::kvcli {
namespace {

using Action = ClusterCommand::Action;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

// "cluster", these words, and the two options that all need.
Words Line(Words words) {
  words.insert(words.begin(), "cluster");
  words.insert(words.end(), {"--etcd=http://a:1,http://b:2", "--cluster=c"});
  return words;
}
ClusterCommand ParsedCluster(const Words& words) {
  const auto command = ParseCommand(Line(words));
  EXPECT_TRUE(command.ok()) << command.status();
  return command.ok() ? command->cluster : ClusterCommand{};
}
std::string ErrorOfCluster(const Words& words) {
  const auto command = ParseCommand(words);
  EXPECT_EQ(command.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(command.status().message());
}

TEST(ClusterCommandTest, InitTakesGroupsAndTerms) {
  const ClusterCommand command =
      ParsedCluster({"init", "--group=g1:n1,n2", "--group", "g2:n3", "--lease_ms=300",
                     "--min_copies=2", "--ring_bytes=65536"});
  EXPECT_EQ(command.action, Action::kInit);
  EXPECT_THAT(command.etcd, ElementsAre("http://a:1", "http://b:2"));
  EXPECT_EQ(command.cluster, "c");
  ASSERT_EQ(command.groups.size(), 2u);
  EXPECT_EQ(command.groups[0].name, "g1");
  EXPECT_THAT(command.groups[0].members, ElementsAre("n1", "n2"));
  EXPECT_THAT(command.groups[1].members, ElementsAre("n3"));
  EXPECT_EQ(command.lease_ms, 300u);
  EXPECT_EQ(command.min_copies, 2u);
  EXPECT_EQ(command.ring_bytes, 65536u);
}

TEST(ClusterCommandTest, AddGroupTakesMembersAndTerms) {
  const ClusterCommand command = ParsedCluster({"add-group", "g3:n5,n6", "--lease_ms=300"});
  EXPECT_EQ(command.action, Action::kAddGroup);
  EXPECT_EQ(command.group, "g3");
  EXPECT_THAT(command.groups.at(0).members, ElementsAre("n5", "n6"));
  EXPECT_EQ(command.lease_ms, 300u);
  EXPECT_THAT(ErrorOfCluster(Line({"add-group", "g3"})), HasSubstr("g1:n1,n2,n3"));
  EXPECT_THAT(ErrorOfCluster(Line({"add-group"})), HasSubstr("GROUP:NODES is missing"));
}

TEST(ClusterCommandTest, MovesTakePartitions) {
  const ClusterCommand move = ParsedCluster({"move", "7", "0-2", "1023", "--to=g2", "--dry-run"});
  EXPECT_EQ(move.action, Action::kMove);
  EXPECT_THAT(move.partitions, ElementsAre(7, 0, 1, 2, 1023));
  EXPECT_EQ(move.to, "g2");
  EXPECT_TRUE(move.dry_run);
  EXPECT_FALSE(move.measures());
  EXPECT_EQ(ParsedCluster({"moves"}).action, Action::kMoves);
  EXPECT_TRUE(ParsedCluster({"moves", "--stop"}).stop);
  for (const char* odd : {"1024", "-1", "2-1", "1-", "-", "x", "0-1024", "01"}) {
    EXPECT_THAT(ErrorOfCluster(Line({"move", "--to=g2", "--", odd})),
                HasSubstr("they are 0 to 1023"))
        << odd;
  }
  EXPECT_THAT(ErrorOfCluster(Line({"move", "--to=g2"})), HasSubstr("PARTITION is missing"));
  EXPECT_THAT(ErrorOfCluster(Line({"move", "7"})), HasSubstr("--to=GROUP"));
}

TEST(ClusterCommandTest, PlansMeasurePartitionsUnlessToldNotTo) {
  EXPECT_TRUE(ParsedCluster({"balance"}).measures());
  EXPECT_TRUE(ParsedCluster({"drain", "g1"}).measures());
  EXPECT_EQ(ParsedCluster({"drain", "g1"}).group, "g1");
  EXPECT_FALSE(ParsedCluster({"balance", "--by_partitions"}).measures());
  EXPECT_FALSE(ParsedCluster({"balance", "--stop"}).measures());
  EXPECT_FALSE(ParsedCluster({"status"}).measures());
  EXPECT_THAT(ErrorOfCluster(Line({"balance", "--stop", "--dry-run"})),
              HasSubstr("exclude each other"));
  EXPECT_THAT(ErrorOfCluster(Line({"status", "--stop"})), HasSubstr("--stop is for"));
  EXPECT_THAT(ErrorOfCluster(Line({"status", "--dry-run"})), HasSubstr("--dry-run is for"));
  EXPECT_THAT(ErrorOfCluster(Line({"status", "--to=g1"})), HasSubstr("--to is for move"));
  EXPECT_THAT(ErrorOfCluster(Line({"move", "1", "--to=g1", "--by_partitions"})),
              HasSubstr("for drain"));
  EXPECT_THAT(ErrorOfCluster(Line({"balance", "--lease_ms=300"})),
              HasSubstr("--lease_ms is for init, set, add-group"));
  EXPECT_THAT(ErrorOfCluster(Line({"drain"})), HasSubstr("GROUP is missing"));
}

TEST(ClusterCommandTest, OthersTakeAGroupAndANode) {
  EXPECT_EQ(ParsedCluster({"status"}).action, Action::kStatus);
  for (const auto& [name, action] : {std::pair{"handover", Action::kHandOver},
                                     {"add", Action::kAdd},
                                     {"remove", Action::kRemove}}) {
    const ClusterCommand command = ParsedCluster({name, "g1", "n2"});
    EXPECT_EQ(command.action, action);
    EXPECT_EQ(command.group, "g1");
    EXPECT_EQ(command.node, "n2");
  }
  const ClusterCommand force = ParsedCluster({"force", "g1", "--from=n2", "--lose-data"});
  EXPECT_EQ(force.action, Action::kForce);
  EXPECT_EQ(force.group, "g1");
  EXPECT_EQ(force.from, "n2");
  EXPECT_FALSE(force.even_if_worse);
  EXPECT_TRUE(
      ParsedCluster({"force", "g1", "--from=n2", "--lose-data", "--even-if-worse"}).even_if_worse);
}

TEST(ClusterCommandTest, InitTakesWhoIsAbandoned) {
  EXPECT_THAT(
      ParsedCluster({"init", "--group=g1:n1,n2", "--abandon=n1", "--abandon", "n2"}).abandon,
      ElementsAre("n1", "n2"));
  EXPECT_THAT(ErrorOfCluster(Line({"status", "--abandon=n1"})), HasSubstr("--abandon is for init"));
  EXPECT_THAT(ErrorOfCluster(Line({"status", "--even-if-worse"})), HasSubstr("is for force"));
}

using Settings = std::map<std::string, std::string>;

TEST(ClusterCommandTest, WhoMakesAGroupSaysWhatItsMembersDoAlike) {
  for (const PolicySetting& setting : PolicySettings()) {
    const std::string value = setting.words.empty() ? "1000" : setting.words[0];
    const std::string word = setting.name + ("=" + value);
    for (const Words& words : {Words{"init", "--group=g1:n1", "--" + word},
                               {"add-group", "g1:n1", "--" + word},
                               {"set", "g1", word}}) {
      EXPECT_EQ(ParsedCluster(words).policy.settings, (Settings{{setting.name, value}})) << word;
    }
  }
}

TEST(ClusterCommandTest, SetTakesTheTermsOfAGroupThatRuns) {
  const ClusterCommand all =
      ParsedCluster({"set", "g1", "min_copies=2", "lease_ms=900", "on_full=evict"});
  EXPECT_EQ(all.action, Action::kSet);
  EXPECT_FALSE(all.changes_map());
  EXPECT_EQ(all.group, "g1");
  EXPECT_EQ(all.min_copies, 2u);
  EXPECT_EQ(all.lease_ms, 900u);
  EXPECT_EQ(all.policy.settings, (Settings{{"on_full", "evict"}}));
  const ClusterCommand one = ParsedCluster({"set", "g1", "on_full=reject", "silence_ms=900"});
  EXPECT_EQ(one.policy.settings, (Settings{{"on_full", "reject"}, {"silence_ms", "900"}}));
  EXPECT_FALSE(one.min_copies || one.lease_ms);
}

TEST(ClusterCommandTest, TakesWhatEtcdAsksFor) {
  const EtcdAccess access =
      ParsedCluster({"status", "--etcd_ca_file=ca", "--etcd_cert_file=cert", "--etcd_key_file=key",
                     "--etcd_user=gannet", "--etcd_password_file=file"})
          .etcd_access;
  EXPECT_EQ(access.ca_file, "ca");
  EXPECT_EQ(access.cert_file, "cert");
  EXPECT_EQ(access.key_file, "key");
  EXPECT_EQ(access.user, "gannet");
  EXPECT_EQ(access.password_file, "file");
  EXPECT_THAT(ErrorOfCluster(Line({"status", "--etcd_user=gannet"})), HasSubstr("go together"));
}

TEST(ClusterCommandTest, TheEnvironmentSaysWhatTheLineLeavesOut) {
  setenv(kEtcdVariable, "http://e:1,http://f:2", 1);
  setenv(kClusterVariable, "d", 1);
  const auto command = ParseCommand(Words{"cluster", "status"});
  const auto with_words = ParseCommand(Line({"status"}));
  unsetenv(kEtcdVariable);
  unsetenv(kClusterVariable);
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_THAT(command->cluster.etcd, ElementsAre("http://e:1", "http://f:2"));
  EXPECT_EQ(command->cluster.cluster, "d");
  ASSERT_TRUE(with_words.ok()) << with_words.status();
  EXPECT_THAT(with_words->cluster.etcd, ElementsAre("http://a:1", "http://b:2"));
  EXPECT_EQ(with_words->cluster.cluster, "c");
}

TEST(ClusterCommandTest, StatusMayBeACheck) {
  EXPECT_TRUE(ParsedCluster({"status", "--check"}).check);
  EXPECT_FALSE(ParsedCluster({"status"}).check);
  EXPECT_TRUE(ParsedCluster({"status"}).goes_to_servers());
  EXPECT_FALSE(ParsedCluster({"moves"}).goes_to_servers());
  EXPECT_THAT(ErrorOfCluster(Line({"moves", "--check"})), HasSubstr("--check is for status"));
}

TEST(ClusterCommandTest, AUsageErrorListsTheActionsOrShowsTheUsageOfOne) {
  for (const Words& words : {Words{"cluster"}, Words{"cluster", "stauts"}}) {
    EXPECT_THAT(ErrorOfCluster(words),
                HasSubstr("\nACTION is one of init, status, handover, add, remove, force, "
                          "set, add-group, remove-group, move, drain, balance, moves"));
  }
  EXPECT_THAT(
      ErrorOfCluster(Line({"add"})),
      HasSubstr("cluster add: GROUP is missing\nusage: cluster add GROUP NODE [--etcd=URL]"));
}

TEST(ClusterCommandTest, SaysWhatIsMissingOrTooMuch) {
  const struct {
    Words words;
    const char* says;
  } cases[] = {
      {{}, "ACTION is missing"},
      {{"stauts"}, "did you mean status?"},
      {{"add"}, "GROUP is missing"},
      {{"add", "g1"}, "NODE is missing"},
      {{"status", "g1"}, "'g1' is one word too many"},
      {{"init"}, "--group=GROUP:NODES is missing"},
      {{"init", "--group=g1"}, "a group is its name and its members"},
      {{"init", "--group=:n1"}, "a group is its name and its members"},
      {{"init", "--group=g1:n1", "--lease_ms=x"}, "--lease_ms needs a number"},
      {{"status", "--lease_ms=600"}, "is for init"},
      {{"status", "--if_missing"}, "is for init"},
      {{"status", "--on_full=evict"}, "is for init"},
      {{"set", "g1", "lease_ms=600", "--ring_bytes=65536"}, "is for init"},
      {{"init", "--group=g1:n1", "--on_full=drop"}, "on_full must be reject or evict"},
      {{"set"}, "GROUP is missing"},
      {{"set", "g1"}, "set needs what is to be set: min_copies=N, lease_ms=N, on_full=reject|"},
      {{"set", "g1", "min_copies"}, "'min_copies' cannot be set"},
      {{"set", "g1", "ring_bytes=65536"}, "'ring_bytes=65536' cannot be set"},
      {{"set", "g1", "to=g2"}, "'to=g2' cannot be set"},
      {{"set", "g1", "lease_ms=x"}, "needs a number"},
      {{"set", "g1", "on_full=drop"}, "on_full must be reject or evict"},
      {{"set", "g1", "silence_ms=99"}, "silence_ms must be 100 to 60000"},
      {{"set", "g1", "memory=1G"}, "'memory=1G' cannot be set"},
      {{"status", "--lose-data"}, "is for force"},
      {{"add", "g1", "n2", "--from=n1"}, "is for force"},
      {{"force", "g1", "--lose-data"}, "--from=NODE is missing"},
      {{"force", "g1", "--from=n2"},
       "--lose-data is missing: writes that were acknowledged may be lost"},
  };
  for (const auto& c : cases) EXPECT_THAT(ErrorOfCluster(Line(c.words)), HasSubstr(c.says));
  EXPECT_THAT(ErrorOfCluster({"cluster", "status", "--cluster=c"}),
              HasSubstr("--etcd=URL[,URL...]"));
  EXPECT_THAT(ErrorOfCluster({"cluster", "status", "--etcd=http://a"}),
              HasSubstr("--cluster=NAME"));
  EXPECT_THAT(ErrorOfCluster({"cluster", "status", "--etcd=,"}), HasSubstr("--etcd needs a URL"));
  EXPECT_THAT(ErrorOfCluster({"cluster", "status", "--cluster="}),
              HasSubstr("--cluster needs a value"));
}

}  // namespace
}  // namespace gannet::kvcli
