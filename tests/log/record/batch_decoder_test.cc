#include "log/record/batch_decoder.h"

#include "log/record/batch_builder.h"
#include "log/record/batch_json.h"
#include "tests/log/record/fixtures.h"

#include <weir/runtime/endian.h>

#include <algorithm>
#include <filesystem>
#include <map>

namespace weir::log {
namespace {

using nlohmann::json;
using testing::data_path;
using testing::Decoded;
using testing::from_hex;
using testing::read_file;
using testing::read_json;
using testing::split_batches;
using testing::verify_and_decode;

// The library's objects keep their order; what is compared here has none.
json unordered(const nlohmann::ordered_json& ordered) {
  return json::parse(ordered.dump());
}

struct PartitionJson {
  json batches = json::array();
  json records = json::array();
  json control = json::array();
};

void add_segment(const std::string& path, bool name_segment, PartitionJson& partition) {
  const std::string bytes = read_file(path);
  const auto batches = split_batches(bytes);
  ASSERT_TRUE(batches.ok()) << batches.error().message();
  std::size_t position = 0;
  for (const ByteView batch : *batches) {
    const Result<Decoded> decoded = verify_and_decode(batch);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message();
    json object = unordered(batch_json(decoded->header));
    object["position"] = position;
    if (name_segment) {
      object["segment"] = std::filesystem::path(path).filename().string();
    }
    partition.batches.push_back(std::move(object));
    json& records = decoded->header.is_control() ? partition.control : partition.records;
    for (const RecordView& record : decoded->records) {
      records.push_back(unordered(record_json(decoded->header, record)));
    }
    position += batch.size();
  }
  EXPECT_EQ(position, bytes.size());
}

void expect_equal_lists(const json& actual, const json& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(actual[i], expected[i]) << what << ' ' << i;
  }
}

std::vector<std::string> segments_of(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".log") {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// A list and not the folder's contents: the cases are named before main() has found the data.
const std::vector<std::string> kCodecCases = {"gzip",
                                              "gzip-level-1",
                                              "gzip-level-9",
                                              "lz4",
                                              "lz4-level-1",
                                              "lz4-level-17",
                                              "lz4-logappendtime",
                                              "mixed",
                                              "none",
                                              "none-logappendtime",
                                              "recompressed-none-to-zstd",
                                              "recompressed-snappy-to-none",
                                              "snappy",
                                              "zstd",
                                              "zstd-level-1",
                                              "zstd-level-22",
                                              "zstd-level-minus-5"};

class DecodeRecordsOfKafka : public ::testing::TestWithParam<std::string> {};

TEST_P(DecodeRecordsOfKafka, GivesEveryFieldOfEveryBatchAndRecord) {
  const std::string folder = "codecs/" + GetParam();
  const json expected = read_json(folder + "/expected.json")["partitions"][0];
  PartitionJson actual;
  for (const std::string& segment :
       segments_of(data_path(folder + "/" + expected["folder"].get<std::string>()))) {
    add_segment(segment, true, actual);
  }

  expect_equal_lists(actual.batches, expected["batches"], "batch");
  expect_equal_lists(actual.records, expected["records"], "record");
  expect_equal_lists(actual.control, expected["control"], "control record");
}

INSTANTIATE_TEST_SUITE_P(Codecs, DecodeRecordsOfKafka, ::testing::ValuesIn(kCodecCases),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(DecodeRecords, HasEveryCodecCase) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("codecs"))) {
    if (entry.is_directory()) {
      found.push_back(entry.path().filename().string());
    }
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(kCodecCases));
}

TEST(DecodeRecords, ReadsTheGoodEdgeBatchesAsOneSegment) {
  const json expected = read_json("edge-batches/expected.json")["partitions"][0];
  PartitionJson actual;
  for (const std::string& segment : segments_of(data_path("edge-batches/edge-good-0"))) {
    add_segment(segment, false, actual);
  }

  expect_equal_lists(actual.batches, expected["batches"], "batch");
  expect_equal_lists(actual.records, expected["records"], "record");
  expect_equal_lists(actual.control, expected["control"], "control record");
}

// Where our reader and Kafka's part. Everything that is not here must be equal.
const std::map<std::string, std::string>& reader_differences() {
  static const std::map<std::string, std::string> kDifferences = {
      {"last-delta-negative",
       "refused: its next offset is not behind its base offset, so a reader that goes on from "
       "there would read it for ever"},
      {"header-value-minus-2",
       "refused: headers are forwarded as the bytes they came in, with -1 as the only null"},
  };
  return kDifferences;
}

bool kafka_reads(const json& batch) {
  const json& reader = batch["reader"];
  return reader.contains("batchesFound") && reader["batchesFound"] > 0 &&
         reader.value("ensureValid", "ok") == "ok" && reader.value("records", "ok") == "ok";
}

// The control record that cannot be parsed has Java's message there, and ours.
json without_control_message(json records) {
  for (json& record : records) {
    record.erase("control");
  }
  return records;
}

void expect_same_contents(const Decoded& decoded, const json& expected) {
  EXPECT_EQ(unordered(batch_json(decoded.header)), expected["batch"]);
  json records = json::array();
  for (const RecordView& record : decoded.records) {
    records.push_back(unordered(record_json(decoded.header, record)));
  }
  expect_equal_lists(without_control_message(records),
                     without_control_message(expected.value("records", json::array())), "record");
}

void check_edge_batch(const json& batch) {
  const std::string bytes = from_hex(batch["bytes"].get<std::string>());
  const auto found = split_batches(bytes);
  bool reads = found.ok() && !found->empty();
  if (found.ok() && batch["reader"].contains("batchesFound")) {
    // Kafka finds the batch of length 48 and refuses it then; our first look refuses it.
    EXPECT_EQ(found->size(), batch["reader"]["batchesFound"].get<std::size_t>());
  }
  for (std::size_t i = 0; reads && i < found->size(); ++i) {
    const Result<Decoded> decoded = verify_and_decode((*found)[i]);
    reads = decoded.ok();
    if (reads && batch.contains("batch")) {
      expect_same_contents(*decoded, batch);
    }
  }
  const bool differs = reader_differences().contains(batch["name"].get<std::string>());
  EXPECT_EQ(reads, kafka_reads(batch) != differs);
}

TEST(DecodeRecords, AgreesWithKafkasReaderOnEveryEdgeBatch) {
  const json batches = read_json("edge-batches/edge.json")["batches"];
  ASSERT_EQ(batches.size(), 140U);
  std::size_t read = 0;
  for (const json& batch : batches) {
    SCOPED_TRACE(batch["name"].get<std::string>() + ": " + batch["what"].get<std::string>());
    check_edge_batch(batch);
    read += kafka_reads(batch) ? 1U : 0U;
  }
  EXPECT_GT(read, 50U);
  EXPECT_LT(read, 90U);
}

std::string with_count(std::int32_t count) {
  BatchBuilder builder(1000);
  RecordRef record;
  record.key = ByteView("k");
  record.value = ByteView("v");
  record.timestamp = 5;
  EXPECT_TRUE(builder.append(record));
  std::string batch(builder.seal().view());
  store_be(batch.data() + 57, count);
  stamp_crc(batch.data(), batch.size());
  return batch;
}

TEST(DecodeRecords, AllocatesNothingForACountThatTheBytesCannotHold) {
  const std::string batch = with_count(INT32_MAX);
  const auto header = verify_batch(batch);
  ASSERT_TRUE(header.ok());
  RecordViews out;
  SharedBytes decompressed;

  const Status decoded = decode_records(*header, batch, DecodeLimits(), out, decompressed);

  EXPECT_EQ(decoded.error().code(), Errc::kCorrupt);
  EXPECT_EQ(out.capacity(), 0U);
}

TEST(DecodeRecords, LeavesTheListAsItWasWhenABatchIsDamaged) {
  const std::string good = with_count(1);
  std::string bad = good + good.substr(kBatchHeaderBytes);
  store_be(bad.data() + 8, static_cast<std::int32_t>(bad.size() - kBatchLengthEnd));
  store_be(bad.data() + 57, std::int32_t{2});
  bad[good.size()] = 0x7e;  // length of the second record
  stamp_crc(bad.data(), bad.size());
  RecordViews out;
  SharedBytes decompressed;
  ASSERT_TRUE(decode_records(*verify_batch(good), good, DecodeLimits(), out, decompressed).ok());

  const Status decoded = decode_records(*verify_batch(bad), bad, DecodeLimits(), out, decompressed);

  EXPECT_EQ(decoded.error().code(), Errc::kCorrupt);
  EXPECT_THAT(decoded.error().message(), ::testing::HasSubstr("record 1 of 2"));
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].key, NullableBytes("k"));
}

TEST(DecodeRecords, AppendsBehindWhatIsThere) {
  const std::string batch = with_count(1);
  RecordViews out;
  SharedBytes decompressed;
  for (std::int64_t i = 0; i < 3; ++i) {
    BatchHeader header = *verify_batch(batch);
    header.base_offset = Offset(10 * i);
    ASSERT_TRUE(decode_records(header, batch, DecodeLimits(), out, decompressed).ok());
  }

  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(out[2].offset, Offset(20));
  EXPECT_EQ(out[2].value, NullableBytes("v"));
  EXPECT_FALSE(static_cast<bool>(decompressed));
}

TEST(DecodeRecords, StopsAtTheLimitOfDecompressedBytes) {
  for (const std::string name : {"gzip", "snappy", "lz4", "zstd"}) {
    const std::string folder = data_path("codecs/" + name + "/codec-" + name + "-0");
    const std::string bytes = read_file(segments_of(folder).front());
    const ByteView batch = split_batches(bytes)->front();
    const auto header = verify_batch(batch);
    RecordViews out;
    SharedBytes decompressed;
    DecodeLimits limits;
    ASSERT_TRUE(decode_records(*header, batch, limits, out, decompressed).ok());
    limits.decompressed_bytes_max = decompressed.size() - 1;
    out.clear();

    EXPECT_EQ(decode_records(*header, batch, limits, out, decompressed).error().code(),
              Errc::kCorrupt)
        << name;
  }
}

}  // namespace
}  // namespace weir::log
