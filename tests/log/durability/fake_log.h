#pragma once

#include "log/durability/durability.h"
#include "log/record/batch_builder.h"

#include <weir/runtime/testing/memory_file_system.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace weir::log::testing {

// A log of one file that counts what it is told.
class FakeLog : public DurableLog {
 public:
  FakeLog(FileSystem& files, const std::string& path, Identity name = {}) : name_(name) {
    Result<std::shared_ptr<File>> file = files.open(path, OpenMode::kCreateOrOpen);
    file_ = file.ok() ? *file : nullptr;  // the power may be off
  }
  void write(Offset end) {
    end_ = end;
    dirty_ = true;
  }
  Identity identity() const override { return name_; }
  std::size_t unflushed_count() const override { return dirty_ ? 1 : 0; }
  Result<Unflushed> prepare_flush(FlushMode mode) override {
    ++rounds;
    Unflushed unflushed{{}, {}, end_};
    if (dirty_ && file_ != nullptr && mode == FlushMode::kByFile) {
      unflushed.files.push_back(file_);
    }
    dirty_ = false;
    return unflushed;
  }
  void on_flushed(Offset end) override { flushed = end; }
  void on_durable(Offset end) override { durable = end; }
  void wake_waiters() override {}
  void on_durability_lost(const Error& error) override { lost = error.to_string(); }

  int rounds = 0;
  Offset durable;
  Offset flushed;
  std::string lost;

 private:
  const Identity name_;
  std::shared_ptr<File> file_;
  Offset end_;
  bool dirty_ = false;
};

// A batch of one record at `base`.
inline SharedBytes batch_at(Offset base, std::size_t value_bytes, char fill = 'v') {
  BatchBuilder builder(64U << 20U);
  const std::string value(value_bytes, fill);
  EXPECT_TRUE(builder.append(RecordRef{ByteView("k"), ByteView(value), 1'700'000'000'000, {}}));
  SharedBytes batch = builder.seal();
  stamp_offset(batch.data(), base, LeaderEpoch(0));
  return batch;
}

}  // namespace weir::log::testing
