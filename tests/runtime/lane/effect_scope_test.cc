#include <weir/runtime/session_engine.h>

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <stdexcept>
#include <string>

namespace weir {
namespace {

// Effects in memory: what a scope wrote is seen once it is promoted.
class MemoryEffects {
 public:
  struct Scope {
    MemoryEffects* effects = nullptr;
    std::map<std::string, std::string> writes;
    std::vector<std::string> outputs;

    Result<NullableBytes> get(ByteView key) {
      const auto own = writes.find(std::string(key));
      if (own != writes.end()) {
        return NullableBytes(own->second);
      }
      const auto found = effects->state.find(std::string(key));
      return found == effects->state.end() ? NullableBytes() : NullableBytes(found->second);
    }
    Status put(ByteView key, NullableBytes value) {
      writes[std::string(key)] = value.view_or_empty();
      return {};
    }
    Status emit(std::uint32_t /*output*/, const RecordRef& record) {
      outputs.emplace_back(record.value.view());
      return {};
    }
  };

  Scope begin_attempt(const Attempt& /*attempt*/) { return {this, {}, {}}; }
  Status promote(Scope scope) {
    if (!promote_error.ok()) {
      return std::exchange(promote_error, {});
    }
    for (const auto& [key, value] : scope.writes) {
      state[key] = value;
    }
    outputs.insert(outputs.end(), scope.outputs.begin(), scope.outputs.end());
    return {};
  }
  void discard(Scope /*scope*/) { ++discarded; }

  std::map<std::string, std::string> state;
  std::vector<std::string> outputs;
  Status promote_error;
  int discarded = 0;
};
static_assert(EffectScope<MemoryEffects>);

// Gives attempts and keeps what became of them.
class Runs : public LaneRuns {
 public:
  explicit Runs(std::uint32_t count) : left_(count) {}
  bool next(Attempt& attempt) override {
    attempt = {.run = {0, left_}, .record = &record_, .session = ByteView("s")};
    return left_-- > 0;
  }
  void finish(RunId /*run*/, Outcome outcome) override { outcomes.push_back(std::move(outcome)); }
  void answer_letter(RunId /*letter*/, bool /*ok*/) override {}
  MonotonicTime now() const override { return {}; }

  std::vector<Outcome> outcomes;

 private:
  RecordView record_;
  std::uint32_t left_;
};

// A failed attempt leaves the last good value and no output.
TEST(EffectScopes, PromotesWhatSucceededAndDiscardsTheRest) {
  MemoryEffects effects;
  Runs runs(3);
  int attempts = 0;
  auto handler = [&](const Attempt&, MemoryEffects::Scope& scope) -> Outcome {
    const Result<NullableBytes> old = scope.get("count");
    const std::string next = std::string(old->view_or_empty()) + "x";
    EXPECT_TRUE(scope.put("count", ByteView(next)).ok());
    EXPECT_EQ(scope.get("count")->view(), next);
    EXPECT_TRUE(scope.emit(0, {.value = ByteView(next), .headers = {}}).ok());
    return ++attempts == 2 ? Outcome::retry(Error(Errc::kTimedOut, "no")) : Outcome::ok();
  };
  run_attempts(runs, effects, handler);

  EXPECT_EQ(effects.state["count"], "xx");
  EXPECT_EQ(effects.outputs, (std::vector<std::string>{"x", "xx"}));
  EXPECT_EQ(effects.discarded, 1);
  EXPECT_EQ(runs.outcomes[1].kind, Outcome::Kind::kRetry);
}

// T46 (DE #211): whatever a handler throws, its attempt ends.
TEST(EffectScopes, T46_EveryExceptionEndsTheAttempt) {
  MemoryEffects effects;
  Runs runs(3);
  int attempts = 0;
  auto handler = [&](const Attempt&, MemoryEffects::Scope&) -> Outcome {
    switch (++attempts) {
      case 1:
        throw std::runtime_error("transient");
      case 2:
        throw std::invalid_argument("permanent");
      default:
        throw 7;  // NOLINT(hicpp-exception-baseclass)
    }
  };
  run_attempts(runs, effects, handler, [](const std::exception& exception) {
    Error error(Errc::kHandlerThrew, exception.what());
    return dynamic_cast<const std::invalid_argument*>(&exception) != nullptr
               ? Outcome::dead(std::move(error))
               : Outcome::retry(std::move(error));
  });

  ASSERT_EQ(runs.outcomes.size(), 3U);
  EXPECT_EQ(runs.outcomes[0].kind, Outcome::Kind::kRetry);
  EXPECT_EQ(runs.outcomes[1].kind, Outcome::Kind::kDead);
  EXPECT_EQ(runs.outcomes[2].kind, Outcome::Kind::kRetry);
  EXPECT_EQ(effects.discarded, 3);
}

TEST(EffectScopes, AFailedPromotionIsAFailedAttempt) {
  MemoryEffects effects;
  effects.promote_error = Error(Errc::kNoSpace, "full");
  Runs runs(1);
  auto handler = [](const Attempt&, MemoryEffects::Scope&) { return Outcome::ok(); };
  run_attempts(runs, effects, handler);

  EXPECT_EQ(runs.outcomes[0].kind, Outcome::Kind::kRetry);
  EXPECT_EQ(runs.outcomes[0].cause.error().code(), Errc::kNoSpace);
}

}  // namespace
}  // namespace weir
