#ifndef GANNET_TESTS_TOOLS_KVLOAD_KVLOAD_RUN_H_
#define GANNET_TESTS_TOOLS_KVLOAD_KVLOAD_RUN_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {

// A file that is removed at the end of its scope.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& name)
      : path_(::testing::TempDir() + name + "." + std::to_string(getpid())) {}
  ~ScratchFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// kvload against a kvserver of the test's own.
class KvloadTest : public ::testing::Test {
 protected:
  test_support::Finished Run(const std::vector<std::string>& flags) {
    std::vector<std::string> words = {test_support::ProgramPath("kvload"),
                                      "--server=" + server_.endpoint(), "--device=soft"};
    words.insert(words.end(), flags.begin(), flags.end());
    return test_support::RunProgram(words);
  }

  // Runs it, expects success, and returns what it wrote as JSON.
  nlohmann::json Measure(std::vector<std::string> flags) {
    const ScratchFile file("kvload.json");
    flags.push_back("--json=" + file.path());
    const test_support::Finished done = Run(flags);
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    std::ifstream in(file.path());
    nlohmann::json json = nlohmann::json::parse(in, nullptr, false);
    EXPECT_TRUE(json.is_object()) << done.out;
    return json;
  }

  ServerProcess server_{{"--memory=256M"}};
};

inline void ExpectCommonFields(const nlohmann::json& json) {
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_TRUE(json.at("commit").is_string());
  EXPECT_TRUE(json.at("build").is_string());
  EXPECT_EQ(json.at("device"), "softverbs0");
  EXPECT_EQ(json.at("kind"), "softverbs");
  EXPECT_GT(json.at("seconds"), 0);
  EXPECT_GT(json.at("ops_per_second"), 0);
  EXPECT_EQ(json.at("wrong_values"), 0);
  for (const auto& [type, op] : json.at("ops").items()) {
    EXPECT_EQ(op.at("errors"), 0) << type;
    for (const char* field : {"count", "not_found", "p50_us", "p99_us", "p999_us", "max_us"}) {
      EXPECT_TRUE(op.at(field).is_number()) << type << " " << field;
    }
  }
  for (const auto& [type, verbs] : json.at("verbs").items()) {
    for (const char* field : {"reads_per_op", "read_bytes_per_op", "sends_per_op", "cas_per_op",
                              "posts_per_op", "completions_per_op"}) {
      EXPECT_TRUE(verbs.at(field).is_number()) << type << " " << field;
    }
  }
}

}  // namespace gannet

#endif  // GANNET_TESTS_TOOLS_KVLOAD_KVLOAD_RUN_H_
