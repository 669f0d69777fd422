#include "proxy/jobs/read_modify_write.h"

#include <optional>
#include <string_view>

namespace gannet::proxy {
namespace {

using Kind = Operation::Kind;

void Read(Job& job);

void Written(Job& job) {
  if (job.answer().code == absl::StatusCode::kFailedPrecondition && job.TryAgain()) {
    return Read(job);
  }
  job.scratch.written(job);
}

void WriteModified(Job& job) {
  const Operation& got = job.answer();
  if (got.code != absl::StatusCode::kOk) return job.scratch.written(job);
  PutOptions options;
  options.only_if_version = got.info.version;  // 0: absent
  options.flags = got.info.flags;
  options.ttl = got.ttl_left();
  const std::optional<std::string_view> value = job.scratch.modify(job, got, options);
  if (!value) return;
  Operation& put = job.Begin(Kind::kPut, job.keys[0]);
  put.value = *value;
  put.put = options;
  job.Then(Written);
}

void Read(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]).brings = job.scratch.brings;
  job.Then(WriteModified);
}

}  // namespace

void ReadModifyWrite(Job& job, Modify modify, Job::Stage written) {
  job.scratch.modify = modify;
  job.scratch.written = written;
  Read(job);
}

}  // namespace gannet::proxy
