#include "apps/averages/pipeline.h"
#include "bench/app_fixture.h"
#include "bench/corpus.h"
#include "bench/jobs.h"
#include "bench/log_fixture.h"

#include <weir/operators/app.h>
#include <weir/runtime/clock.h>
#include <weir/runtime/executor.h>
#include <weir/runtime/rng.h>
#include <weir/state/aggregate_serde.h>

#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

// averages: what the program averages runs, from a topic of quotes to a topic of averages, with its
// changelog and checkpoints.

namespace weir::bench {
namespace {

using averages::Average;
using averages::Mean;
using averages::Price;

constexpr const char* kQuotes = "quotes";
constexpr const char* kAverages = "averages";
constexpr const char* kChangelog = "bench-means-changelog";
constexpr std::uint32_t kSymbols = 5'000;
constexpr std::uint64_t kQuoteCount = 10'000'000;
constexpr std::uint64_t kCentsMax = 100'000;
constexpr std::int64_t kCommitMs = 100;
constexpr std::int64_t kCheckpointMs = 200;
constexpr Timestamp kFirstQuote = 1'577'836'800'000;  // 2020-01-01
constexpr Timestamp kQuoteEvery = 1000;
// Under callgrind a program takes about so many times longer; so do its intervals.
constexpr std::int64_t kCallgrindSlowness = 40;
constexpr auto kPatience = std::chrono::seconds(60);

// Quotes of symbols drawn by Zipf's law, prices uniform from 0.01 to 1000.00; and, by symbol, what
// their prices add up to: the oracle.
class Quotes {
 public:
  explicit Quotes(std::uint64_t count) : symbols_(make_text(kSymbols, count)) {
    Rng rng(kSeed);
    cents_.reserve(count);
    sums_.resize(kSymbols);
    for (std::uint64_t i = 0; i < count; ++i) {
      cents_.push_back(static_cast<std::uint32_t>(1 + rng.below(kCentsMax)));
      sums_[symbols_->words[i]] += cents_.back();
    }
  }
  std::uint64_t count() const { return cents_.size(); }
  std::string_view symbol(std::size_t i) const { return symbols_->word(i); }
  std::string price(std::size_t i) const {
    return fmt::format("{}.{:02}", cents_[i] / 100, cents_[i] % 100);
  }

  // What must be known of a symbol in the end. Errors: it is not what is expected.
  Status check(const std::string& symbol, const Mean& mean) const {
    WEIR_TRY_ASSIGN(const std::size_t rank, rank_of(symbol));
    WEIR_TRY(expect_equal(static_cast<std::uint64_t>(mean.count), symbols_->counts[rank],
                          "number of quotes of " + symbol));
    constexpr std::uint64_t kUnitsOfACent = 10'000'000'000'000'000;
    const averages::Int128 sum = averages::Int128{sums_[rank]} * kUnitsOfACent;
    return expect(mean.high == 0 && mean.middle == static_cast<std::uint64_t>(sum >> 64) &&
                      mean.low == static_cast<std::uint64_t>(sum),
                  "the sum of " + symbol + " is wrong");
  }
  Status check(const std::string& symbol, const Average& average) const {
    constexpr long double kClose = 1e-15L;
    WEIR_TRY_ASSIGN(const std::size_t rank, rank_of(symbol));
    const auto count = static_cast<long double>(symbols_->counts[rank]);
    const long double right = static_cast<long double>(sums_[rank]) / 100 / count;
    WEIR_TRY(expect_equal(static_cast<std::uint64_t>(average.count), symbols_->counts[rank],
                          "number of quotes of " + symbol));
    return expect(std::abs(std::stold(average.average) - right) <= right * kClose,
                  fmt::format("the average of {} is {}", symbol, average.average));
  }
  std::uint64_t distinct() const { return symbols_->distinct; }

 private:
  Result<std::size_t> rank_of(const std::string& symbol) const {
    if (ranks_.empty()) {
      for (std::size_t rank = 0; rank < symbols_->vocabulary.size(); ++rank) {
        ranks_[symbols_->vocabulary[rank]] = rank;
      }
    }
    const auto found = ranks_.find(symbol);
    WEIR_TRY(expect(found != ranks_.end(), "there is a symbol " + symbol));
    return found->second;
  }

  std::shared_ptr<const Text> symbols_;
  std::vector<std::uint32_t> cents_;
  std::vector<std::uint64_t> sums_;  // by rank, cents
  mutable std::unordered_map<std::string, std::size_t> ranks_;
};

// The quotes of a case, kept from run to run.
class QuotesOfACase {
 public:
  const Quotes& of(std::uint64_t count) {
    if (!quotes_ || quotes_->count() != count) {
      quotes_ = std::make_unique<Quotes>(count);
    }
    return *quotes_;
  }

 private:
  std::unique_ptr<Quotes> quotes_;
};

Status send_quotes(Backend& log, const Quotes& quotes, const std::string& durability) {
  WEIR_TRY(make_topic(log.admin(), kQuotes, durability));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSink> sink, open_sink(log));
  WEIR_TRY_ASSIGN(const SinkTopicInfo topic, sink->open_topic(kQuotes));
  for (std::uint64_t i = 0; i < quotes.count(); ++i) {
    const std::string price = quotes.price(i);
    const RecordRef record{.key = ByteView(quotes.symbol(i)),
                           .value = ByteView(price),
                           .timestamp = kFirstQuote + static_cast<Timestamp>(i) * kQuoteEvery,
                           .headers = {}};
    WEIR_TRY(sink->send(topic.handle, PartitionId(0), {&record, 1}));
  }
  return sink->flush().status();
}

// The last record of each symbol is what is known of it.
template <class T>
Status verify_topic(Backend& log, const std::string& topic, const Quotes& quotes) {
  WEIR_TRY_ASSIGN(const PartitionOffsets offsets, log.admin().offsets({topic, PartitionId(0)}));
  WEIR_TRY_ASSIGN(const std::unique_ptr<RecordSource> source, open_source(log, topic));
  std::unordered_map<std::string, std::string> last;
  WEIR_TRY(read_records(*source, static_cast<std::uint64_t>(offsets.high_watermark.value()),
                        [&last](const RecordBlock& block) {
                          for (const RecordView& record : block.records) {
                            last[std::string(record.key.view())] = record.value.view();
                          }
                        }));
  WEIR_TRY(expect_equal(last.size(), quotes.distinct(), "number of symbols in " + topic));
  for (const auto& [symbol, bytes] : last) {
    WEIR_TRY_ASSIGN(const T value, Serde<T>::read(bytes));
    WEIR_TRY(quotes.check(symbol, value));
  }
  return {};
}

AppOptions app_options(const log::EmbeddedLog& log, const std::string& durability, const Run& run) {
  const std::int64_t slowness = run.counting() ? kCallgrindSlowness : 1;
  AppOptions options;
  options.application_id = "bench";
  options.commit_interval_ms = kCommitMs * slowness;
  options.state_dir = log.state_directory();
  options.checkpoint_interval_ms = kCheckpointMs * slowness;
  options.internal_durability = durability;
  return options;
}

// From start() to the end of stop(): with the opening of the store, all commits, the checkpoints
// during the run and the last one at the end.
Status average_with_weir(Run& run, QuotesOfACase& all, const std::string& durability) {
  const Quotes& quotes = all.of(run.items());
  WEIR_TRY_ASSIGN(const std::unique_ptr<log::EmbeddedLog> log, open_log(run.folder()));
  WEIR_TRY(send_quotes(*log, quotes, durability));
  WEIR_TRY(make_topic(log->admin(), kAverages, durability));
  const std::unique_ptr<Executor> executor = make_asio_executor(1);
  App app(averages::average_prices(kQuotes, kAverages), app_options(*log, durability, run), *log,
          {system_clock(), posix_file_system(), *executor});
  run.start();
  WEIR_TRY(app.start());
  WEIR_TRY(run_until_drained(app));
  const std::uint64_t commits = metric(app, "weir_app_commits_total");
  const std::uint64_t checkpoints = metric(app, "weir_store_checkpoints_total");
  WEIR_TRY(app.stop(kPatience));
  run.stop();
  run.note("commits", static_cast<double>(commits), "commits");
  run.note("checkpoints", static_cast<double>(checkpoints), "checkpoints");
  run.note("symbols", static_cast<double>(quotes.distinct()), "symbols");
  WEIR_TRY(verify_topic<Average>(*log, kAverages, quotes));
  WEIR_TRY(verify_topic<Mean>(*log, kChangelog, quotes));
  return log->close();
}

// The same prices, parsed and added in a map: no log, no result, no durability.
Status average_in_std_map(Run& run, QuotesOfACase& all) {
  const Quotes& quotes = all.of(run.items());
  std::vector<std::string> prices;
  prices.reserve(quotes.count());
  for (std::uint64_t i = 0; i < quotes.count(); ++i) {
    prices.push_back(quotes.price(i));
  }
  std::unordered_map<std::string, Mean> means;
  run.start();
  for (std::uint64_t i = 0; i < quotes.count(); ++i) {
    WEIR_TRY_ASSIGN(const Price price, averages::parse_price(prices[i]));
    Mean& mean = means[std::string(quotes.symbol(i))];
    mean = averages::add(mean, price);
  }
  run.stop();
  WEIR_TRY(expect_equal(means.size(), quotes.distinct(), "number of symbols"));
  for (const auto& [symbol, mean] : means) {
    WEIR_TRY(quotes.check(symbol, mean));
  }
  return {};
}

}  // namespace

std::vector<Case> averages_cases() {
  std::vector<Case> cases;
  for (const char* durability : {"memory", "fsync"}) {
    const auto quotes = std::make_shared<QuotesOfACase>();
    Case& one = cases.emplace_back();
    one.name = fmt::format("5k.{}", durability);
    one.unit = "quote";
    one.items = kQuoteCount;
    one.counted = 2'000'000;
    one.show_rss = true;
    one.contenders = {
        {"weir", [quotes, durability = std::string(durability)](
                     Run& run) { return average_with_weir(run, *quotes, durability); }},
        {"std_unordered_map", [quotes](Run& run) { return average_in_std_map(run, *quotes); }}};
  }
  return cases;
}

}  // namespace weir::bench
