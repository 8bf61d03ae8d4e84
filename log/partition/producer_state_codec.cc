#include "log/partition/producer_state.h"
#include "log/record/wire.h"

#include <fmt/format.h>

#include <algorithm>

// What a ProducerState looks like in files.

namespace weir::log {

void ProducerState::insert(ProducerId id, Producer producer) {
  if (producer.in_transaction()) {
    open_.emplace(producer.transaction_first, id);
  }
  producers_.emplace(id, producer);
}

std::vector<ProducerEntry> ProducerState::entries() const {
  std::vector<ProducerEntry> entries;
  entries.reserve(producers_.size());
  for (const auto& [id, producer] : producers_) {
    ProducerEntry entry;
    entry.id = id;
    entry.epoch = producer.epoch;
    if (producer.batch_count > 0) {
      const Batch& last = producer.batches[producer.batch_count - std::size_t{1}];
      entry.last_sequence = last.last_sequence;
      entry.last_offset = last.last_offset;
      entry.offset_delta = last.offset_delta;
    }
    entry.timestamp = producer.timestamp;
    entry.coordinator_epoch = producer.coordinator_epoch;
    entry.transaction_first_offset = producer.transaction_first;
    entries.push_back(entry);
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& left, const auto& right) { return left.id < right.id; });
  return entries;
}

ProducerState ProducerState::from_entries(const std::vector<ProducerEntry>& entries,
                                          Limits limits) {
  ProducerState state(limits);
  for (const ProducerEntry& entry : entries) {
    Producer producer;
    producer.epoch = entry.epoch;
    producer.coordinator_epoch = entry.coordinator_epoch;
    producer.timestamp = entry.timestamp;
    producer.transaction_first = entry.transaction_first_offset;
    if (entry.last_offset != kNoOffset) {
      producer.batches[0] = {entry.last_sequence, entry.last_offset, entry.offset_delta,
                             entry.timestamp, false};
      producer.batch_count = 1;
    }
    state.insert(entry.id, producer);
  }
  return state;
}

std::string ProducerState::encode() const {
  WireWriter out;
  out.integer(static_cast<std::uint32_t>(producers_.size()));
  std::vector<ProducerId> ids;
  ids.reserve(producers_.size());
  for (const auto& [id, producer] : producers_) {
    ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  for (const ProducerId id : ids) {
    const Producer& producer = *find(id);
    out.integer(id.value());
    out.integer(producer.epoch.value());
    out.integer(producer.coordinator_epoch);
    out.integer(producer.timestamp);
    out.integer(producer.transaction_first.value());
    out.integer(producer.batch_count);
    for (std::size_t i = 0; i < producer.batch_count; ++i) {
      const Batch& batch = producer.batches[i];
      out.integer(batch.last_sequence);
      out.integer(batch.last_offset.value());
      out.integer(batch.offset_delta);
      out.integer(batch.timestamp);
      out.integer(static_cast<std::uint8_t>(batch.aborted));
    }
  }
  return out.take();
}

Result<ProducerState> ProducerState::decode(ByteView bytes, Limits limits) {
  ProducerState state(limits);
  WireReader in(bytes);
  const auto count = in.integer<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const ProducerId id(in.integer<std::int64_t>());
    Producer producer;
    producer.epoch = ProducerEpoch(in.integer<std::int16_t>());
    producer.coordinator_epoch = in.integer<std::int32_t>();
    producer.timestamp = in.integer<std::int64_t>();
    producer.transaction_first = Offset(in.integer<std::int64_t>());
    producer.batch_count = in.integer<std::uint8_t>();
    if (producer.batch_count > kWindow) {
      return Error(Errc::kCorrupt, fmt::format("producer {} has {} batches, at most {} are kept",
                                               id.value(), producer.batch_count, kWindow));
    }
    for (std::size_t j = 0; j < producer.batch_count; ++j) {
      Batch& batch = producer.batches[j];
      batch.last_sequence = in.integer<std::int32_t>();
      batch.last_offset = Offset(in.integer<std::int64_t>());
      batch.offset_delta = in.integer<std::int32_t>();
      batch.timestamp = in.integer<std::int64_t>();
      batch.aborted = in.integer<std::uint8_t>() != 0;
    }
    state.insert(id, producer);
  }
  if (!in.ok()) {
    return Error(Errc::kCorrupt, "the producers of a partition end early");
  }
  return state;
}

}  // namespace weir::log
