#pragma once

#include <weir/operators/error_policies.h>
#include <weir/operators/topic.h>
#include <weir/operators/topology.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/record.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir::testing {

// A record that came out; null key and null value are std::nullopt.
template <class K, class V>
struct TestRecord {
  std::optional<K> key;
  std::optional<V> value;
  Timestamp timestamp = kNoTimestamp;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  friend bool operator==(const TestRecord&, const TestRecord&) = default;
};

// A record as bytes, with the topic it went to.
struct RawTestRecord {
  std::string topic;
  std::optional<std::string> key;
  std::optional<std::string> value;
  Timestamp timestamp = kNoTimestamp;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
};

// Runs a topology in memory, record by record, with real tasks and stores and no log: every topic
// has one partition, and after each record the caches are flushed and everything is committed, so
// that caching merges nothing (streams-features 2.21). What goes to a topic that the topology reads
// is fed back before pipe() returns. Internal topics are named "<application_id>-...".
//
// Mistakes of the test (a topic that the topology does not read, a topology with a bad status())
// end the process. Threading: confined to its owner.
class TopologyTestDriver {
 public:
  struct Options {
    std::string application_id = "app";
    std::size_t cache_bytes_max = 0;  // statestore.cache.max.bytes
    Timestamp now = 0;                // the wall clock at the start
    ErrorPolicies errors;
  };

  explicit TopologyTestDriver(Topology topology) : TopologyTestDriver(std::move(topology), {}) {}
  TopologyTestDriver(Topology topology, Options options);
  ~TopologyTestDriver();

  // Errors: kHandlerThrew, kCorrupt, kInvalidTimestamp: what stopped the task. The driver is not
  // used further then.
  template <class K, class V>
  Status pipe(Topic<K, V> topic,
              const std::type_identity_t<std::optional<internal::PlainOf<K>>>& key,
              const std::type_identity_t<std::optional<internal::PlainOf<V>>>& value,
              Timestamp timestamp, HeadersView headers = {}) {
    std::string key_bytes;
    std::string value_bytes;
    return pipe_bytes(topic.name, {.key = bytes_of(key, key_bytes),
                                   .value = bytes_of(value, value_bytes),
                                   .timestamp = timestamp,
                                   .headers = headers});
  }
  Status pipe_bytes(std::string_view topic, const RecordRef& record);

  // The oldest record that was not read yet; nullopt when there is none.
  template <class K, class V>
  std::optional<TestRecord<internal::PlainOf<K>, internal::PlainOf<V>>> read(Topic<K, V> topic) {
    std::optional<RawTestRecord> raw = read_bytes(topic.name);
    if (!raw.has_value()) {
      return std::nullopt;
    }
    return TestRecord<internal::PlainOf<K>, internal::PlainOf<V>>{
        value_of<internal::PlainOf<K>>(raw->key), value_of<internal::PlainOf<V>>(raw->value),
        raw->timestamp, std::move(raw->headers)};
  }
  template <class K, class V>
  std::vector<TestRecord<internal::PlainOf<K>, internal::PlainOf<V>>> read_all(Topic<K, V> topic) {
    std::vector<TestRecord<internal::PlainOf<K>, internal::PlainOf<V>>> all;
    while (auto record = read(topic)) {
      all.push_back(std::move(*record));
    }
    return all;
  }
  std::optional<RawTestRecord> read_bytes(std::string_view topic);
  // Everything that was written since the last call, internal topics too, in order of writing.
  // Does not take anything away from read().
  std::vector<RawTestRecord> take_written();

  // The store's value; nullopt when absent.
  template <class K, class V>
  std::optional<V> get(KvStore<K, V> store, const std::type_identity_t<K>& key) {
    std::string key_bytes;
    append(key, key_bytes);
    std::optional<std::pair<std::string, Timestamp>> found = get_bytes(store.name, key_bytes);
    return found.has_value() ? value_of<V>(found->first) : std::nullopt;
  }
  struct StoreRow {
    std::string key;
    std::string value;
    Timestamp timestamp = kNoTimestamp;
  };
  // All entries in byte order of the key.
  std::vector<StoreRow> rows(std::string_view store);

  // Records that operators dropped: null keys and values, and what the error policies skipped.
  std::uint64_t dropped() const;
  Timestamp now() const;
  // Moves the wall clock, runs the punctuators that are due and commits.
  Status advance_wall_clock(Duration by);

 private:
  struct State;
  std::optional<std::pair<std::string, Timestamp>> get_bytes(std::string_view store, ByteView key);

  template <class T>
  static void append(const T& value, std::string& out) {
    internal::append_bytes(value, out);
  }
  template <class T>
  static NullableBytes bytes_of(const std::optional<T>& value, std::string& out) {
    if (!value.has_value()) {
      return {};
    }
    append(*value, out);
    return ByteView(out);
  }
  template <class T>
  static std::optional<T> value_of(const std::optional<std::string>& bytes) {
    if (!bytes.has_value()) {
      return std::nullopt;
    }
    return Serde<T>::read(*bytes).value();
  }

  std::unique_ptr<State> state_;
};

}  // namespace weir::testing
