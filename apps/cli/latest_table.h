#pragma once

#include "apps/cli/stream_program.h"
#include "apps/cli/topic_reader.h"

#include <weir/state/serde.h>

#include <memory>
#include <string>
#include <utility>

namespace weir::cli {

// The latest value of each key of an output topic, in a map from std::string; tombstones remove.
// What is shown of it is the program's. Threading: confined to its owner.
template <class Map>
class LatestTable : public ResultTable {
 public:
  explicit LatestTable(std::unique_ptr<TopicReader> reader) : reader_(std::move(reader)) {}

  // A Table that reads `topic` from its start.
  template <class Table>
  static Result<std::unique_ptr<ResultTable>> open(Backend& log, const std::string& topic) {
    WEIR_TRY_ASSIGN(std::unique_ptr<TopicReader> reader, TopicReader::open(log, topic));
    return std::unique_ptr<ResultTable>(std::make_unique<Table>(std::move(reader)));
  }

  Result<bool> update() override {
    return reader_->update([this](const RecordView& record) { return take(record); });
  }
  Status update_to_end() override {
    return reader_->update_to_end([this](const RecordView& record) { return take(record); });
  }

 protected:
  const Map& rows() const { return rows_; }

 private:
  Status take(const RecordView& record) {
    if (record.key.is_null()) {
      return {};
    }
    const std::string key(record.key.view());
    if (record.value.is_null()) {
      rows_.erase(key);
      return {};
    }
    WEIR_TRY_ASSIGN(rows_[key], Serde<typename Map::mapped_type>::read(record.value.view()));
    return {};
  }

  const std::unique_ptr<TopicReader> reader_;
  Map rows_;
};

}  // namespace weir::cli
