#include "bench/corpus.h"
#include "bench/jobs.h"
#include "bench/log_fixture.h"
#include "bench/plain_file.h"

#include <weir/log/consumer.h>
#include <weir/log/producer.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/rng.h>

#include <array>
#include <memory>
#include <thread>

// append, replay, tail and many-consumers: 16-byte keys, 100-byte values, 64 KB batches, one
// partition.

namespace weir::bench {
namespace {

constexpr const char* kTopic = "records";
constexpr std::size_t kKeyBytes = 16;
constexpr std::size_t kValueBytes = 100;
// What such a record takes in a batch: its bytes and eight of length, deltas and counts.
constexpr std::size_t kEncodedBytes = kKeyBytes + kValueBytes + 10;
constexpr std::size_t kPayloads = 4096;
constexpr std::size_t kSpan = 512;  // records handed over at once, as a task does
constexpr std::uint64_t kRecords = 2'000'000;
constexpr std::uint64_t kCounted = 200'000;

// Records to send, over and over, and what a reader must find.
class Payloads {
 public:
  Payloads() : keys_(make_keys(kPayloads)), records_(kPayloads) {
    Rng rng(kSeed);
    const Timestamp now = system_clock().now();
    bytes_.resize(kPayloads * kValueBytes);
    for (char& byte : bytes_) {
      byte = static_cast<char>(rng.next());
    }
    for (std::size_t i = 0; i < kPayloads; ++i) {
      const ByteView value(bytes_.data() + i * kValueBytes, kValueBytes);
      records_[i] = {.key = ByteView(keys_[i]), .value = value, .timestamp = now, .headers = {}};
    }
  }
  Payloads(const Payloads&) = delete;
  Payloads& operator=(const Payloads&) = delete;

  // The next records of a stream, at most `most`, from its record `at`.
  std::span<const RecordRef> next(std::uint64_t at, std::uint64_t most) const {
    const std::size_t begin = at % kPayloads;
    return std::span(records_).subspan(begin,
                                       std::min<std::uint64_t>({most, kSpan, kPayloads - begin}));
  }
  const RecordRef& at(std::uint64_t i) const { return records_[i % kPayloads]; }

 private:
  std::vector<std::string> keys_;
  std::string bytes_;
  std::vector<RecordRef> records_;
};

const Payloads& payloads() {
  static const Payloads all;
  return all;
}

Status send(RecordSink& sink, SinkTopic topic, std::uint64_t from, std::uint64_t count) {
  for (std::uint64_t sent = 0; sent < count;) {
    const std::span<const RecordRef> records = payloads().next(from + sent, count - sent);
    WEIR_TRY(sink.send(topic, PartitionId(0), records));
    sent += records.size();
  }
  return {};
}

// Looks at what the log holds: every record, outside of the measured time.
Status verify(Backend& log, std::uint64_t records) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(log, kTopic));
  std::uint64_t at = 0;
  std::uint64_t wrong = 0;
  WEIR_TRY(read_records(*source, records, [&](const RecordBlock& block) {
    for (const RecordView& record : block.records) {
      const RecordRef& sent = payloads().at(at++);
      wrong += record.key == sent.key && record.value == sent.value ? 0U : 1U;
    }
  }));
  return expect_equal(wrong, 0, "count of records that differ from what was sent");
}

Status append(Run& run, const std::string& durability) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(make_topic(log->admin(), kTopic, durability));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(*log));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kTopic));
  payloads();
  run.start();
  WEIR_TRY(send(*sink, topic.handle, 0, run.items()));
  WEIR_TRY(sink->flush().status());
  run.stop();
  WEIR_TRY(verify(*log, run.items()));
  return log->close();
}

// Through the Producer: from any thread, with the partitioner, its own thread and acknowledgements.
Status produce(Run& run, bool idempotent) {
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(make_topic(log->admin(), kTopic, "memory"));
  log::ProducerOptions options;
  options.batch_size = kBatchBytes;
  options.enable_idempotence = idempotent;
  {
    WEIR_TRY_ASSIGN(const std::unique_ptr<log::Producer> producer,
                    log::Producer::open(*log, options));
    log::ProducerRecord record;
    record.topic = kTopic;
    payloads();
    run.start();
    for (std::uint64_t i = 0; i < run.items(); ++i) {
      record.key = payloads().at(i).key;
      record.value = payloads().at(i).value;
      WEIR_TRY(producer->send(record));
    }
    WEIR_TRY(producer->flush());
    run.stop();
  }
  WEIR_TRY(verify(*log, run.items()));
  return log->close();
}

// What a reader does with a record at least: look at its key and at its value's ends.
std::uint64_t touch(const NullableBytes& key, const NullableBytes& value) {
  const auto byte = [](char c) { return std::uint64_t{static_cast<unsigned char>(c)}; };
  return byte(key.view().back()) + byte(value.view().front()) + byte(value.view().back());
}

std::uint64_t touch(const RecordBlock& block) {
  std::uint64_t sum = 0;
  for (const RecordView& record : block.records) {
    sum += touch(record.key, record.value);
  }
  return sum;
}

std::uint64_t touched_sum(std::uint64_t records) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < records; ++i) {
    sum += touch(payloads().at(i).key, payloads().at(i).value);
  }
  return sum;
}

// A log that was closed and opened again: nothing of it is open or in our memory.
Status replay(Run& run) {
  {
    WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
    WEIR_TRY(make_topic(log->admin(), kTopic, "memory"));
    WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(*log));
    WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kTopic));
    WEIR_TRY(send(*sink, topic.handle, 0, run.items()));
    WEIR_TRY(sink->flush().status());
    WEIR_TRY(log->close());
  }
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  std::uint64_t sum = 0;
  run.start();
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(*log, kTopic));
  WEIR_TRY(read_records(*source, run.items(),
                        [&sum](const RecordBlock& block) { sum += touch(block); }));
  run.stop();
  WEIR_TRY(expect_equal(sum, touched_sum(run.items()), "sum over the records"));
  return log->close();
}

// Alternately appends (not measured) and reads what was appended.
Status read_tail(Run& run, std::size_t tail_cache_bytes) {
  constexpr std::uint64_t kStep = 8192;  // about 1 MB
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log,
                  open_log(run.folder(), tail_cache_bytes));
  WEIR_TRY(make_topic(log->admin(), kTopic, "memory"));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(*log));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kTopic));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(*log, kTopic));
  std::uint64_t sum = 0;
  for (std::uint64_t done = 0; done < run.items();) {
    const std::uint64_t count = std::min(kStep, run.items() - done);
    WEIR_TRY(send(*sink, topic.handle, done, count));
    WEIR_TRY(sink->flush().status());
    run.start();
    WEIR_TRY(
        read_records(*source, count, [&sum](const RecordBlock& block) { sum += touch(block); }));
    run.stop();
    done += count;
  }
  WEIR_TRY(expect_equal(sum, touched_sum(run.items()), "sum over the records"));
  return log->close();
}

constexpr std::uint64_t kConsumers = 200;
constexpr std::uint64_t kConsumerThreads = 4;

// Consumers of one partition, each its own group, that read all of it `passes` times.
class Readers {
 public:
  Readers(Backend& log, std::uint64_t records, std::uint64_t passes)
      : log_(log), records_(records), passes_(passes) {}

  Status open(std::uint64_t first_group, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      log::ConsumerOptions options;
      options.group_id = "group-" + std::to_string(first_group + i);
      options.auto_offset_reset = "earliest";
      options.auto_commit = false;
      WEIR_TRY_ASSIGN(std::unique_ptr<log::Consumer> consumer, log::Consumer::open(log_, options));
      WEIR_TRY(consumer->assign({kPartition}));
      WEIR_TRY(consumer->position(kPartition).status());
      consumers_.push_back({std::move(consumer), 0});
    }
    return {};
  }

  // Each polls in turn.
  Status read() {
    for (std::size_t done = 0; done < consumers_.size();) {
      done = 0;
      for (Reader& reader : consumers_) {
        if (reader.seen < records_ * passes_) {
          WEIR_TRY(poll(reader));
        } else {
          ++done;
        }
      }
    }
    return {};
  }

  // No commit of one group moved another's.
  Status verify() {
    WEIR_TRY(expect_equal(sum_, consumers_.size() * passes_ * touched_sum(records_),
                          "sum over the records"));
    for (std::uint64_t i = 0; i < consumers_.size(); ++i) {
      log::Consumer& consumer = *consumers_[i].consumer;
      WEIR_TRY_ASSIGN(const auto before, consumer.committed(kPartition));
      WEIR_TRY(expect(!before.has_value(), "no offset of a group that did not commit yet"));
      WEIR_TRY(consumer.commit());
      WEIR_TRY_ASSIGN(const auto committed_lag, consumer.committed_lag(kPartition));
      WEIR_TRY(expect(committed_lag == 0, "a group's offset at the end"));
    }
    return {};
  }

 private:
  struct Reader {
    std::unique_ptr<log::Consumer> consumer;
    std::uint64_t seen = 0;
  };
  static inline const TopicPartition kPartition{kTopic, PartitionId(0)};

  Status poll(Reader& reader) {
    WEIR_TRY_ASSIGN(const log::ConsumerRecords records,
                    reader.consumer->poll(std::chrono::seconds(10)));
    WEIR_TRY(expect(!records.empty(), "records within ten seconds"));
    for (const auto& [partition, record] : records) {
      sum_ += touch(record.key, record.value);
      ++reader.seen;
    }
    const bool again = reader.seen % records_ == 0 && reader.seen < records_ * passes_;
    return again ? reader.consumer->seek_to_beginning() : Status();
  }

  Backend& log_;
  const std::uint64_t records_;
  const std::uint64_t passes_;
  std::vector<Reader> consumers_;
  std::uint64_t sum_ = 0;
};

// `items` counts every record for every consumer that reads it.
Status read_by(Run& run, std::uint64_t consumers, std::uint64_t passes) {
  const std::uint64_t records = std::max<std::uint64_t>(run.items() / (consumers * passes), 1);
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(make_topic(log->admin(), kTopic, "memory"));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(*log));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kTopic));
  WEIR_TRY(send(*sink, topic.handle, 0, records));
  WEIR_TRY(sink->flush().status());
  const std::uint64_t threads = std::min(kConsumerThreads, consumers);
  std::vector<std::unique_ptr<Readers>> readers;
  for (std::uint64_t i = 0; i < threads; ++i) {
    readers.push_back(std::make_unique<Readers>(*log, records, passes));
    WEIR_TRY(readers.back()->open(i * consumers / threads, consumers / threads));
  }
  std::vector<Status> results(threads);
  run.start();
  std::vector<std::thread> workers;
  for (std::uint64_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] { results[i] = readers[i]->read(); });
  }
  for (std::thread& worker : workers) {
    worker.join();
  }
  run.stop();
  for (std::uint64_t i = 0; i < threads; ++i) {
    WEIR_TRY(results[i]);
    WEIR_TRY(readers[i]->verify());
  }
  readers.clear();
  return log->close();
}

Contender plain(std::string name, Status (*run)(Run&, std::uint64_t)) {
  return {std::move(name), [run](Run& one) { return run(one, kEncodedBytes); }};
}

}  // namespace

std::vector<Case> append_cases() {
  std::vector<Case> cases;
  for (const char* durability : {"memory", "fsync"}) {
    Case& one = cases.emplace_back();
    one.name = durability;
    one.unit = "record";
    one.items = kRecords;
    one.counted = kCounted;
    one.budget_ns = 100;
    one.contenders = {{"weir", [durability](Run& run) { return append(run, durability); }},
                      plain("plain_file", write_plain_file)};
  }
  Case& producer = cases.emplace_back();
  producer.name = "producer";
  producer.unit = "record";
  producer.items = kRecords;
  producer.counted = kCounted;
  producer.contenders = {{"weir", [](Run& run) { return produce(run, true); }},
                         {"weir_without_idempotence", [](Run& run) { return produce(run, false); }},
                         plain("plain_file", write_plain_file)};
  producer.elsewhere = {
      {"kafka_producer", 1660 + 630, "measured elsewhere: Kafka 4.3.1, acks=1, client and broker"}};
  return cases;
}

std::vector<Case> replay_cases() {
  Case one;
  one.name = "files";
  one.unit = "record";
  one.items = kRecords;
  one.counted = kCounted;
  one.budget_ns = 45;
  one.contenders = {{"weir", replay}, plain("plain_file", read_plain_file)};
  one.elsewhere = {
      {"kafka_consumer", 730 + 130, "measured elsewhere: Kafka 4.3.1, client and broker"}};
  return {one};
}

std::vector<Case> many_consumers_cases() {
  constexpr std::uint64_t kPassesOfOne = 20;
  Case one;
  one.name = std::to_string(kConsumers);
  one.unit = "record";
  one.items = 20'000'000;  // 100,000 for each
  one.counted = kCounted;
  one.contenders = {{"weir", [](Run& run) { return read_by(run, kConsumers, 1); }},
                    {"one_consumer", [](Run& run) { return read_by(run, 1, kPassesOfOne); },
                     static_cast<double>(kPassesOfOne) / static_cast<double>(kConsumers)}};
  return {one};
}

std::vector<Case> tail_cases() {
  Case one;
  one.name = "cache";
  one.unit = "record";
  one.items = kRecords;
  one.counted = kCounted;
  one.budget_ns = 20;
  one.contenders = {{"weir", [](Run& run) { return read_tail(run, 4U << 20U); }},
                    {"from_files", [](Run& run) { return read_tail(run, 0); }}};
  return {one};
}

}  // namespace weir::bench
