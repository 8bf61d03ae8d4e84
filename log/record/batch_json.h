#pragma once

#include "log/record/batch_header.h"

#include <weir/runtime/record.h>

#include <nlohmann/json_fwd.hpp>

namespace weir::log {

// Batches and records as JSON, for people and for comparing with what Kafka's own classes say.
// Bytes are lower-case hex, null is null; more than 512 bytes are {length, crc32c, sha256}. Header
// names are text; bytes that are no UTF-8 become U+FFFD, as in Java.

// {size, baseOffset, lastOffset, leaderEpoch, magic, crc, attributes, codec, timestampType,
//  isTransactional, isControl, baseTimestamp, maxTimestamp, producerId, producerEpoch,
//  baseSequence, lastSequence, count} and deleteHorizonMs if the batch has one.
nlohmann::ordered_json batch_json(const BatchHeader& header);

// {offset, timestamp, sequence, key, value, headers: [[name, value], ...]}; for a record of a
// control batch also type and, for ABORT and COMMIT, coordinatorEpoch; or, when it cannot be
// parsed, control: what is wrong.
nlohmann::ordered_json record_json(const BatchHeader& header, const RecordView& record);

nlohmann::ordered_json bytes_json(const NullableBytes& bytes);

// baseSequence + delta, wrapping behind 2^31 - 1 to 0; -1 when the batch has no sequence.
std::int32_t sequence_at(const BatchHeader& header, std::int32_t delta);

}  // namespace weir::log
