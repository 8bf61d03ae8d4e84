#include "tests/state/store/store_world.h"
#include "tests/support/size_of_run.h"

#include <weir/runtime/rng.h>

#include <algorithm>
#include <iostream>
#include <list>

namespace weir::state::testing {
namespace {

using State = ChangelogSink::State;
using Scope = std::map<std::string, std::optional<std::pair<std::string, Timestamp>>>;

// What a store must be: plain maps.
struct Model {
  State committed;
  Scope scope;

  State through_scope() const {
    State state = committed;
    for (const auto& [key, value] : scope) {
      if (value.has_value()) {
        state[key] = *value;
      } else {
        state.erase(key);
      }
    }
    return state;
  }
};

struct Attempt {
  AttemptScope scope;
  Scope writes;
};

// Random operations on a store and on the model beside it.
class Player {
 public:
  Player(const StoreCase& store_case, std::uint64_t seed) : world_(store_case), rng_(seed) {}

  void play(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) {
      step();
      if (world_.store->needs_early_commit()) {
        commit();
      }
    }
    commit();
    restart();
    EXPECT_EQ(world_.scan(ReadView::kCommitted), model_.committed);
  }

  const StoreMetrics& metrics() const { return world_.store->metrics(); }
  int crashes() const { return crashes_; }
  int failed_checkpoints() const { return failed_checkpoints_; }

 private:
  void step() {
    switch (rng_.below(40)) {
      case 0:
      case 1:
        return commit();
      case 2:
        return drop();
      case 3:
        return checkpoint();
      case 4:
        return finish_checkpoint();
      case 5:
        return compare_scans();
      case 6:
        return range_scan();
      case 7:
        return use_iterator();
      case 8:
      case 9:
        return open_attempt();
      case 10:
      case 11:
      case 12:
        return use_attempt();
      case 13:
        return end_attempt();
      case 14:
        return rng_.chance(1, 8) ? restart() : checkpoint();
      case 15:
        return load_many();
      case 16:
      case 17:
      case 18:
      case 19:
        return write(std::nullopt);
      case 20:
      case 21:
      case 22:
      case 23:
      case 24:
        return read();
      default:
        return write(value());
    }
  }

  std::string key() {
    // Some share 16 bytes, some are longer than an entry holds, one is empty.
    const std::uint64_t number = rng_.below(400);
    switch (number % 8) {
      case 0:
        return "a-rather-long-key-that-does-not-fit-" + std::to_string(number);
      case 1:
        return std::string("prefix0123456789").substr(0, number % 17) + std::to_string(number);
      case 2:
        return std::string(1, static_cast<char>(number & 0xffU)) + std::string(number % 3, '\0');
      case 3:
        return number == 3 ? std::string() : std::string(number % 5, '\xff');
      default:
        return std::to_string(number);
    }
  }

  std::string value() {
    const std::uint64_t kind = rng_.below(10);
    const std::size_t size = kind < 5 ? 8 : kind < 8 ? rng_.below(9) : rng_.below(200);
    return std::string(size, static_cast<char>('a' + rng_.below(26)));
  }

  void write(const std::optional<std::string>& bytes) {
    const std::string at = key();
    const Timestamp timestamp = rng_.between(0, 1'000'000);
    const NullableBytes view = bytes ? NullableBytes(ByteView(*bytes)) : NullableBytes();
    if (rng_.chance(1, 2)) {
      ASSERT_TRUE(world_.store->put(at, view, timestamp).ok());
    } else {
      const std::uint64_t hash = KeyValueStore::hash(at);
      world_.store->prefetch(hash);
      world_.store->prefetch_entry(hash);
      auto entry = world_.store->find_or_load(at, hash);
      ASSERT_TRUE(entry.ok()) << entry.error().to_string();
      ASSERT_TRUE(world_.store->put(*entry, view, timestamp).ok());
    }
    model_.scope[at] = bytes ? std::optional(std::pair(*bytes, timestamp)) : std::nullopt;
  }

  void expect_same(const NullableValue& actual, const State& expected, const std::string& at) {
    const auto found = expected.find(at);
    ASSERT_EQ(actual.has_value(), found != expected.end()) << "key " << at;
    if (actual.has_value()) {
      EXPECT_EQ(actual->value, found->second.first);
      EXPECT_EQ(actual->timestamp, found->second.second);
    }
  }

  void read() {
    const std::string at = key();
    const Result<NullableValue> open = world_.store->get(at);
    ASSERT_TRUE(open.ok());
    expect_same(*open, model_.through_scope(), at);
    const auto committed = world_.store->get_committed(at);
    ASSERT_TRUE(committed.ok());
    expect_same(committed->has_value()
                    ? NullableValue(ValueView{(*committed)->value, (*committed)->timestamp})
                    : NullableValue(),
                model_.committed, at);
  }

  void load_many() {
    std::vector<std::string> keys;
    for (int i = 0; i < 20; ++i) {
      keys.push_back(key());
    }
    const std::vector<ByteView> views(keys.begin(), keys.end());
    ASSERT_TRUE(world_.store->load_many(views).ok());
  }

  void commit() {
    if (rng_.chance(1, 10) && !model_.scope.empty()) {
      // The sink fails; a part of the scope may be in the log.
      world_.sink.fail_after = static_cast<int>(rng_.below(model_.scope.size()));
      ASSERT_FALSE(world_.store->write_changelog(world_.sink, 0, PartitionId(0)).ok());
      appended_ = true;
      ASSERT_FALSE(world_.store->drop().ok());
      if (rng_.chance(1, 3)) {
        return;
      }
    }
    const Status done = world_.commit();
    ASSERT_TRUE(done.ok()) << done.error().to_string();
    model_.committed = model_.through_scope();
    model_.scope.clear();
    appended_ = false;
    ASSERT_EQ(world_.sink.fold(), model_.committed);
  }

  void drop() {
    const Status dropped = world_.store->drop();
    ASSERT_EQ(dropped.ok(), !appended_);
    if (dropped.ok()) {
      model_.scope.clear();
    }
  }

  void checkpoint() {
    // RocksDB sleeps a second after a failed flush, hence fewer of those.
    const bool fails =
        world_.case_.rocksdb && rng_.chance(1, world_.case_.mode == StoreMode::kDirect ? 60 : 6);
    if (fails) {
      world_.files.set_fault([](auto operation, const std::string&) {
        using Operation = weir::testing::MemoryFileSystem::Operation;
        return operation == Operation::kWrite ? Status(Error(Errc::kNoSpace, "disk is full"))
                                              : Status();
      });
    }
    const Status begun = world_.store->begin_checkpoint();
    const bool ran = world_.store->checkpoint_running();
    if (!fails) {
      ASSERT_TRUE(begun.ok()) << begun.error().to_string();
      return;
    }
    const Status ended = world_.store->wait_checkpoint();
    world_.files.set_fault(nullptr);
    if (ran && !ended.ok()) {
      ++failed_checkpoints_;
      EXPECT_EQ(ended.error().code(), Errc::kNoSpace) << ended.error().to_string();
    }
    if (world_.case_.mode == StoreMode::kDirect) {
      return restart();  // commits that were not flushed may be lost: the store is given up
    }
    EXPECT_EQ(world_.scan(ReadView::kCommitted), model_.committed);
  }

  void finish_checkpoint() {
    if (rng_.chance(1, 2)) {
      world_.executor.run_ready();
      ASSERT_TRUE(world_.store->poll_checkpoint().ok());
    } else {
      const Status done = world_.store->wait_checkpoint();
      ASSERT_TRUE(done.ok()) << done.error().to_string();
    }
  }

  void compare_scans() {
    EXPECT_EQ(world_.scan(ReadView::kCommitted), model_.committed);
    EXPECT_EQ(world_.scan(ReadView::kOpenScope), model_.through_scope());
  }

  void range_scan() {
    const State state = model_.through_scope();
    std::string from = key();
    std::string to = key();
    if (to < from) {
      std::swap(from, to);
    }
    expect_rows(world_.store->scan(from, ByteView(to)), state.lower_bound(from),
                state.lower_bound(to));
    const std::string prefix = from.substr(0, rng_.below(3));
    State matching;
    std::copy_if(state.begin(), state.end(), std::inserter(matching, matching.end()),
                 [&](const auto& row) { return row.first.starts_with(prefix); });
    expect_rows(world_.store->scan_prefix(prefix), matching.cbegin(), matching.cend());
  }

  static void expect_rows(Result<std::unique_ptr<StoreIterator>> rows, State::const_iterator at,
                          State::const_iterator end) {
    ASSERT_TRUE(rows.ok());
    for (; (*rows)->valid(); (*rows)->next(), ++at) {
      ASSERT_NE(at, end) << "one too many: " << (*rows)->key();
      ASSERT_EQ((*rows)->key(), at->first);
      ASSERT_EQ((*rows)->value(), at->second.first);
    }
    ASSERT_EQ(at, end);
  }

  // An iterator that stays open while everything else goes on: ascending keys, and each key that
  // has not changed since it was opened is seen.
  void use_iterator() {
    if (iterator_ == nullptr) {
      auto opened = world_.store->scan(ByteView(), std::nullopt, ReadView::kCommitted);
      ASSERT_TRUE(opened.ok());
      iterator_ = std::move(opened).value();
      iterator_from_ = model_.committed;
      iterator_seen_.clear();
      iterator_start_ = world_.sink.log.size();
      ASSERT_EQ(world_.store->metrics().open_iterators.load(), 1);
      return;
    }
    for (std::uint64_t steps = rng_.below(60); steps > 0 && iterator_->valid(); --steps) {
      const std::string at(iterator_->key());
      ASSERT_TRUE(iterator_seen_.empty() || iterator_seen_.rbegin()->first < at);
      iterator_seen_[at] = {std::string(iterator_->value()), iterator_->timestamp()};
      iterator_->next();
    }
    ASSERT_TRUE(iterator_->status().ok());
    if (!iterator_->valid()) {
      check_seen();
      iterator_.reset();
    }
  }

  void check_seen() {
    State unchanged = iterator_from_;
    for (std::size_t i = iterator_start_; i < world_.sink.log.size(); ++i) {
      unchanged.erase(world_.sink.log[i].key);
    }
    for (const auto& [at, row] : unchanged) {
      const auto seen = iterator_seen_.find(at);
      ASSERT_NE(seen, iterator_seen_.end()) << "missed key " << at;
      EXPECT_EQ(seen->second, row) << "key " << at;
    }
  }

  void open_attempt() {
    if (attempts_.size() < 4) {
      attempts_.push_back({world_.store->open_attempt(), {}});
    }
  }

  Attempt* some_attempt() {
    if (attempts_.empty()) {
      return nullptr;
    }
    return &*std::next(attempts_.begin(),
                       static_cast<std::ptrdiff_t>(rng_.below(attempts_.size())));
  }

  void use_attempt() {
    Attempt* attempt = some_attempt();
    if (attempt == nullptr) {
      return;
    }
    const std::string at = key();
    if (rng_.chance(1, 2)) {
      const std::string bytes = value();
      ASSERT_TRUE(attempt->scope.put(at, ByteView(bytes), 5).ok());
      attempt->writes[at] = std::pair(bytes, Timestamp{5});
    } else if (rng_.chance(1, 3)) {
      ASSERT_TRUE(attempt->scope.put(at, NullableBytes(), 6).ok());
      attempt->writes[at] = std::nullopt;
    }
    Model seen = model_;
    seen.committed = model_.through_scope();
    seen.scope = attempt->writes;
    const Result<NullableValue> read = attempt->scope.get(at);
    ASSERT_TRUE(read.ok());
    expect_same(*read, seen.through_scope(), at);
  }

  void end_attempt() {
    Attempt* attempt = some_attempt();
    if (attempt == nullptr) {
      return;
    }
    if (rng_.chance(2, 3)) {
      ASSERT_TRUE(attempt->scope.promote().ok());
      for (const auto& [at, write] : attempt->writes) {
        model_.scope[at] = write;
      }
    } else {
      attempt->scope.discard();
    }
    attempts_.remove_if([attempt](const Attempt& other) { return &other == attempt; });
  }

  // The process dies and comes back; sometimes it dies again in the middle of the restore.
  void restart() {
    ++crashes_;
    attempts_.clear();
    iterator_.reset();
    model_.committed = world_.sink.fold();  // a scope that was appended is restored, too
    model_.scope.clear();
    appended_ = false;
    world_.crash();
    ASSERT_FALSE(::testing::Test::HasFatalFailure());
    if (rng_.chance(1, 4)) {
      restore(rng_.below(world_.sink.log.size() + 1));
      world_.crash();
      ASSERT_FALSE(::testing::Test::HasFatalFailure());
    }
    const bool warm_first = rng_.chance(1, 3);
    if (warm_first) {
      ASSERT_TRUE(world_.store->warm().ok());
    }
    restore(world_.sink.log.size());
    ASSERT_TRUE(world_.store->finish_restore(position_at(world_.sink.log.size())).ok());
    if (!warm_first && rng_.chance(1, 3)) {
      ASSERT_TRUE(world_.store->warm().ok());
    }
    compare_scans();
  }

  void restore(std::size_t end) {
    const auto position = world_.store->checkpoint_position();
    ASSERT_TRUE(position.ok());
    std::size_t at =
        position->has_value() ? static_cast<std::size_t>((*position)->next_offset.value()) : 0;
    ASSERT_LE(at, world_.sink.log.size()) << "a checkpoint above the changelog";
    while (at < end) {
      const std::size_t to = std::min(end, at + 1 + rng_.below(100));
      const std::vector<RecordView> views = world_.sink.views(at, to);
      const Status restored = world_.store->restore(views, position_at(to));
      ASSERT_TRUE(restored.ok()) << restored.error().to_string();
      at = to;
    }
  }

  StoreWorld world_;
  Rng rng_;
  Model model_;
  std::list<Attempt> attempts_;
  std::unique_ptr<StoreIterator> iterator_;
  State iterator_from_;
  State iterator_seen_;
  std::size_t iterator_start_ = 0;
  bool appended_ = false;  // a part of the scope is in the log
  int crashes_ = 0;
  int failed_checkpoints_ = 0;
};

class ReferenceModel : public ::testing::TestWithParam<StoreCase> {};

TEST_P(ReferenceModel, AgreesAfterRandomOperationsCommitsCheckpointsAndCrashes) {
  const std::optional<std::uint64_t> given = weir::testing::given_seed();
  const std::uint64_t first = given.value_or(1);
  const std::uint64_t last = given ? first : weir::testing::rounds<std::uint64_t>(6, 60);
  for (std::uint64_t seed = first; seed <= last && !HasFailure(); ++seed) {
    SCOPED_TRACE("WEIR_TEST_SEED=" + std::to_string(seed));
    Player player(GetParam(), seed);
    player.play(2500);
    EXPECT_GT(player.crashes(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllModes, ReferenceModel,
    ::testing::Values(StoreCase{"HotInMemoryCheckpoints", StoreMode::kHot, 1U << 30U, false},
                      StoreCase{"HotInRocksDb", StoreMode::kHot, 1U << 30U, true},
                      StoreCase{"TinyHotInMemoryCheckpoints", StoreMode::kHot, 12'000, false},
                      StoreCase{"TinyHotInRocksDb", StoreMode::kHot, 12'000, true},
                      StoreCase{"DirectInMemoryCheckpoints", StoreMode::kDirect, 1U << 30U, false},
                      StoreCase{"DirectInRocksDb", StoreMode::kDirect, 1U << 30U, true},
                      StoreCase{"Memory", StoreMode::kMemory, 1U << 30U, false}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace weir::state::testing
