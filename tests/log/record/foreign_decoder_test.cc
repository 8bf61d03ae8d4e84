#include "log/record/batch_builder.h"
#include "tests/log/record/fixtures.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

// Our batches, read by kafka-python: a decoder that shares no line and no author with ours.

namespace weir::log {
namespace {

constexpr Timestamp kTime = 1700000000000;

std::string text(const NullableBytes& bytes) {
  if (bytes.is_null()) {
    return "~";
  }
  return bytes.size() == 0 ? "-" : testing::to_hex(bytes.view());
}

// Batches of our builder, and what a reader must print of them.
class Writer {
 public:
  explicit Writer(Compression compression = {}) : builder_(20000, compression) {}
  void add(const RecordRef& record) {
    if (!builder_.append(record)) {
      close_batch();
      EXPECT_TRUE(builder_.append(record));
    }
    lines_ += fmt::format("{} {} {} {}", next_offset_++, record.timestamp, text(record.key),
                          text(record.value));
    for (const HeaderView& header : record.headers) {
      lines_ += fmt::format(" {}={}", text(header.name), text(header.value));
    }
    lines_ += '\n';
  }
  void close_batch() {
    const std::int64_t base = next_batch_;
    next_batch_ = base + builder_.count();
    SharedBytes batch = builder_.seal();
    stamp_offset(batch.data(), Offset(base), LeaderEpoch(4));
    bytes_ += batch.view();
  }
  const std::string& bytes() const { return bytes_; }
  const std::string& lines() const { return lines_; }

 private:
  BatchBuilder builder_;
  std::int64_t next_offset_ = 0;
  std::int64_t next_batch_ = 0;
  std::string bytes_;
  std::string lines_;
};

struct Output {
  int exit_code = -1;
  std::string text;
};

Output run(const std::string& command) {
  Output output;
  FILE* const pipe = popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::array<char, 65536> block{};
  for (std::size_t n = 0; (n = fread(block.data(), 1, block.size(), pipe)) > 0;) {
    output.text.append(block.data(), n);
  }
  const int status = pclose(pipe);
  output.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

Output read_with_kafka_python(const std::string& bytes) {
  const std::string path =
      (std::filesystem::temp_directory_path() / fmt::format("weir-batches-{}", getpid())).string();
  std::ofstream(path, std::ios::binary) << bytes;
  // Debian's interpreter, which has Debian's packages.
  const Output output =
      run("/usr/bin/python3 " WEIR_TEST_DATA "/../log/record/foreign_decoder.py " + path);
  std::filesystem::remove(path);
  return output;
}

void add_combinations(Writer& writer) {
  const std::string binary("\x00\x01\xff\x7f", 4);
  const std::array<NullableBytes, 5> choices = {NullableBytes(), ByteView(""), ByteView("text"),
                                                ByteView(binary),
                                                ByteView("gr\xc3\xb6\xc3\x9f"
                                                         "e")};
  Timestamp time = kTime;
  for (const NullableBytes& key : choices) {
    for (const NullableBytes& value : choices) {
      Headers headers;
      headers.add("first", value);
      headers.add("", NullableBytes());
      headers.add("first", ByteView(""));
      RecordRef record;
      record.key = key;
      record.value = value;
      record.timestamp = time++;
      writer.add(record);
      record.headers = headers.view();
      writer.add(record);
    }
  }
}

void add_sizes(Writer& writer) {
  for (std::size_t size = 0; size < 9000; size += size < 300 ? 1 : 97) {
    const std::string key(size % 50, 'k');
    const std::string value(size, static_cast<char>('a' + size % 26));
    RecordRef record;
    record.key = ByteView(key);
    record.value = ByteView(value);
    // In and out of order, across one, two and three bytes of delta.
    record.timestamp = kTime + static_cast<Timestamp>(size * size) * (size % 2 == 0 ? 1 : -1);
    writer.add(record);
  }
}

void add_large_batch(Writer& writer) {
  const std::string value(30000, 'x');
  RecordRef record;
  record.value = ByteView(value);
  record.timestamp = kTime;
  writer.add(record);
}

void expect_kafka_python_reads(const Compression& compression) {
  Writer writer(compression);
  add_combinations(writer);
  add_sizes(writer);
  add_large_batch(writer);
  add_combinations(writer);
  writer.close_batch();

  const Output output = read_with_kafka_python(writer.bytes());

  ASSERT_NE(output.exit_code, 3) << "a package of kafka-python's is missing: scripts/setup";
  ASSERT_EQ(output.exit_code, 0) << output.text;
  EXPECT_EQ(output.text, writer.lines());
}

TEST(ForeignDecoder, KafkaPythonReadsWhatOurBuilderWrites) {
  expect_kafka_python_reads({});
}

TEST(ForeignDecoder, KafkaPythonReadsWhatOurBuilderCompresses) {
  for (const Compression& compression :
       {Compression{Codec::kGzip, -1}, Compression{Codec::kGzip, 9}, Compression{Codec::kSnappy, 0},
        Compression{Codec::kLz4, 9}, Compression{Codec::kLz4, 17}, Compression{Codec::kZstd, 3},
        Compression{Codec::kZstd, 22}, Compression{Codec::kZstd, -131072}}) {
    SCOPED_TRACE(fmt::format("{} {}", codec_name(compression.codec), *compression.level));
    expect_kafka_python_reads(compression);
  }
}

}  // namespace
}  // namespace weir::log
