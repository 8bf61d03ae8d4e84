#pragma once

#include "tests/crash/pipeline/kill_switch.h"

#include <weir/runtime/backend.h>

namespace weir::crash {

// A log beside which the process dies between the steps of a commit, where the switch says; reports
// "commit TOPIC PARTITION OFFSET" once a commit is durable. Borrows both.
class KillerBackend final : public Backend {
 public:
  KillerBackend(Backend& inner, KillSwitch& kill) : inner_(inner), kill_(kill) {}

  Admin& admin() override { return inner_.admin(); }
  Result<std::unique_ptr<RecordSource>> make_source(const SourceOptions& options) override;
  Result<std::unique_ptr<RecordSink>> make_sink(const SinkOptions& options) override;
  Result<std::unique_ptr<Group>> make_group(const std::string& group_id) override;

 private:
  Backend& inner_;
  KillSwitch& kill_;
};

}  // namespace weir::crash
