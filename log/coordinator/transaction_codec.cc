#include "log/coordinator/transaction_codec.h"

#include "log/record/wire.h"

#include <fmt/core.h>

namespace weir::log {
namespace {

constexpr std::int16_t kKeyVersion = 0;
constexpr std::int16_t kFlexible = 1;  // from this version of the value on

// Tags of version 1.
enum Tag : std::uint32_t {
  kPreviousProducerId = 0,
  kNextProducerId = 1,
  kClientVersion = 2,
  kNextProducerEpoch = 3,
};

struct TaggedFields {
  std::uint32_t count = 0;
  WireWriter bytes;

  template <class T>
  void add(Tag tag, T value, T absent) {
    if (value != absent) {
      ++count;
      bytes.uvarint(tag);
      bytes.uvarint(sizeof(T));
      bytes.integer(value);
    }
  }
};

void write_count(WireWriter& out, std::size_t count, std::int16_t version) {
  if (version >= kFlexible) {
    out.uvarint(count + 1);
  } else {
    out.integer(static_cast<std::int32_t>(count));
  }
}

void write_null(WireWriter& out, std::int16_t version) {
  if (version >= kFlexible) {
    out.uvarint(0);
  } else {
    out.integer(std::int32_t{-1});
  }
}

void write_partitions(WireWriter& out, const std::vector<TransactionValue::TopicPartitions>& topics,
                      std::int16_t version) {
  write_count(out, topics.size(), version);
  for (const auto& [topic, partitions] : topics) {
    if (version >= kFlexible) {
      out.compact_string(topic);
    } else {
      out.string(topic);
    }
    write_count(out, partitions.size(), version);
    for (const PartitionId partition : partitions) {
      out.integer(partition.value());
    }
    if (version >= kFlexible) {
      out.uvarint(0);  // no tagged fields
    }
  }
}

// nullopt: null.
std::optional<std::uint32_t> read_count(WireReader& in, std::int16_t version) {
  if (version >= kFlexible) {
    const std::uint32_t plus_one = in.uvarint();
    return plus_one == 0 ? std::nullopt : std::optional(plus_one - 1);
  }
  const auto count = in.integer<std::int32_t>();
  return count < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(count));
}

std::vector<TransactionValue::TopicPartitions> read_partitions(WireReader& in, std::uint32_t topics,
                                                               std::int16_t version) {
  std::vector<TransactionValue::TopicPartitions> result;
  for (; topics > 0 && in.ok(); --topics) {
    TransactionValue::TopicPartitions topic;
    topic.first = version >= kFlexible ? in.compact_string() : in.string();
    for (std::uint32_t left = read_count(in, version).value_or(0); left > 0 && in.ok(); --left) {
      topic.second.emplace_back(in.integer<std::int32_t>());
    }
    if (version >= kFlexible) {
      in.skip_tagged_fields();
    }
    result.push_back(std::move(topic));
  }
  return result;
}

}  // namespace

std::string_view transaction_status_name(TransactionStatus status) {
  switch (status) {
    case TransactionStatus::kEmpty:
      return "Empty";
    case TransactionStatus::kOngoing:
      return "Ongoing";
    case TransactionStatus::kPrepareCommit:
      return "PrepareCommit";
    case TransactionStatus::kPrepareAbort:
      return "PrepareAbort";
    case TransactionStatus::kCompleteCommit:
      return "CompleteCommit";
    case TransactionStatus::kCompleteAbort:
      return "CompleteAbort";
    case TransactionStatus::kDead:
      return "Dead";
    case TransactionStatus::kPrepareEpochFence:
      return "PrepareEpochFence";
  }
  return "unknown";
}

std::string encode_transaction_key(const std::string& transactional_id) {
  WireWriter out;
  out.integer(kKeyVersion);
  out.string(transactional_id);
  return out.take();
}

std::string encode_transaction_value(const TransactionValue& value, std::int16_t version) {
  WEIR_ASSERT(version == 0 || version == kFlexible);
  WireWriter out;
  out.integer(version);
  out.integer(value.producer_id.value());
  out.integer(value.producer_epoch.value());
  out.integer(value.timeout_ms);
  out.integer(static_cast<std::int8_t>(value.status));
  if (value.partitions) {
    write_partitions(out, *value.partitions, version);
  } else {
    write_null(out, version);
  }
  out.integer(value.last_update);
  out.integer(value.start);
  if (version >= kFlexible) {
    TaggedFields tagged;
    tagged.add(kPreviousProducerId, value.previous_producer_id.value(), std::int64_t{-1});
    tagged.add(kNextProducerId, value.next_producer_id.value(), std::int64_t{-1});
    tagged.add(kClientVersion, value.client_version, std::int16_t{0});
    tagged.add(kNextProducerEpoch, value.next_producer_epoch.value(), std::int16_t{-1});
    out.uvarint(tagged.count);
    out.raw(tagged.bytes.bytes());
  }
  return out.take();
}

Result<std::optional<std::string>> decode_transaction_key(ByteView key) {
  WireReader in(key);
  const auto version = in.integer<std::int16_t>();
  if (in.ok() && version != kKeyVersion) {
    return std::optional<std::string>();
  }
  std::string transactional_id(in.string());
  if (!in.ok()) {
    return Error(Errc::kCorrupt, fmt::format("transaction record has a key of {} bytes that ends "
                                             "too early",
                                             key.size()));
  }
  return std::optional(std::move(transactional_id));
}

Result<TransactionValue> decode_transaction_value(ByteView value) {
  WireReader in(value);
  const auto version = in.integer<std::int16_t>();
  if (in.ok() && (version < 0 || version > kFlexible)) {
    return Error(Errc::kUnsupported,
                 fmt::format("transaction record of version {}, this program reads 0 to {}",
                             version, kFlexible));
  }
  TransactionValue result;
  result.producer_id = ProducerId(in.integer<std::int64_t>());
  result.producer_epoch = ProducerEpoch(in.integer<std::int16_t>());
  result.timeout_ms = in.integer<std::int32_t>();
  const auto status = in.integer<std::int8_t>();
  if (const std::optional<std::uint32_t> topics = read_count(in, version)) {
    result.partitions = read_partitions(in, *topics, version);
  }
  result.last_update = in.integer<std::int64_t>();
  result.start = in.integer<std::int64_t>();
  if (version >= kFlexible) {
    in.tagged_fields([&result](std::uint32_t tag, WireReader& field) {
      switch (tag) {
        case kPreviousProducerId:
          result.previous_producer_id = ProducerId(field.integer<std::int64_t>());
          break;
        case kNextProducerId:
          result.next_producer_id = ProducerId(field.integer<std::int64_t>());
          break;
        case kClientVersion:
          result.client_version = field.integer<std::int16_t>();
          break;
        case kNextProducerEpoch:
          result.next_producer_epoch = ProducerEpoch(field.integer<std::int16_t>());
          break;
        default:
          break;
      }
    });
  }
  if (!in.ok()) {
    return Error(Errc::kCorrupt,
                 fmt::format("transaction record of version {} is too short", version));
  }
  if (status < 0 || status > static_cast<std::int8_t>(TransactionStatus::kPrepareEpochFence)) {
    return Error(Errc::kCorrupt,
                 fmt::format("transaction record has the unknown status {}", status));
  }
  result.status = static_cast<TransactionStatus>(status);
  return result;
}

}  // namespace weir::log
