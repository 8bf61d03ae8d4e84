#include <weir/runtime/settings.h>

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weir {
namespace {

struct TopicSettings {
  std::int64_t segment_bytes = 1 << 30;
  std::int64_t retention_ms = 604'800'000;
  bool preallocate = false;
  std::string cleanup_policy = "delete";
  std::string note;
};

constexpr std::array kProperties{
    Property<TopicSettings>{"segment.bytes", &TopicSettings::segment_bytes, 14, INT32_MAX, "",
                            "Size at which a segment is rolled."},
    Property<TopicSettings>{"retention.ms", &TopicSettings::retention_ms, -1, INT64_MAX, "",
                            "Age at which a segment is deleted."},
    Property<TopicSettings>{"preallocate", &TopicSettings::preallocate, 0, 0, "",
                            "Reserve blocks."},
    Property<TopicSettings>{"cleanup.policy", &TopicSettings::cleanup_policy, 0, 0,
                            "delete,compact", "What happens to old segments."},
    Property<TopicSettings>{"note", &TopicSettings::note, 0, 0, "", "Any text."},
};

Result<TopicSettings> parse(const std::map<std::string, std::string>& given) {
  return parse_settings<TopicSettings>("topic orders", kProperties, given);
}

std::string message_of(const std::map<std::string, std::string>& given) {
  const Result<TopicSettings> settings = parse(given);
  EXPECT_FALSE(settings.ok());
  EXPECT_EQ(settings.error().code(), Errc::kInvalidConfig);
  return settings.error().message();
}

TEST(ParseSettings, ReadsGivenValuesOverDefaults) {
  const TopicSettings settings = parse({{"segment.bytes", "1048576"},
                                        {"retention.ms", "-1"},
                                        {"preallocate", "true"},
                                        {"cleanup.policy", "compact"},
                                        {"note", "anything: goes, here"}})
                                     .value();

  EXPECT_EQ(settings.segment_bytes, 1'048'576);
  EXPECT_EQ(settings.retention_ms, -1);
  EXPECT_TRUE(settings.preallocate);
  EXPECT_EQ(settings.cleanup_policy, "compact");
  EXPECT_EQ(settings.note, "anything: goes, here");
  EXPECT_EQ(parse({}).value().segment_bytes, 1 << 30);
}

TEST(DescribeSettings, TellsDefaultRangeAndMeaningOfEach) {
  std::string text;
  for (const SettingDescription& one : describe_settings<TopicSettings>(kProperties)) {
    text += one.name + "|" + one.default_value + "|" + one.range + "|" + one.doc + "\n";
  }
  EXPECT_EQ(text,
            "segment.bytes|1073741824|14 to 2147483647|Size at which a segment is rolled.\n"
            "retention.ms|604800000|-1 or more|Age at which a segment is deleted.\n"
            "preallocate|false|true,false|Reserve blocks.\n"
            "cleanup.policy|delete|delete,compact|What happens to old segments.\n"
            "note|||Any text.\n");
}

TEST(ParseSettings, ReportsAllProblemsAtOnceOneALine) {
  EXPECT_EQ(message_of({{"segment.byte", "1"},
                        {"segment.bytes", "13"},
                        {"preallocate", "yes"},
                        {"cleanup.policy", "compacted"},
                        {"zookeeper.connect", "x"}}),
            "topic orders: 5 settings are not valid\n"
            "  \"segment.byte\" is not a setting; did you mean \"segment.bytes\"?\n"
            "  \"zookeeper.connect\" is not a setting; remove it\n"
            "  segment.bytes=\"13\" is out of range; give 14 to 2147483647\n"
            "  preallocate=\"yes\" is not a flag; give true or false\n"
            "  cleanup.policy=\"compacted\" is not one of delete,compact");
}

TEST(ParseSettings, ReportsOneProblemOnOneLine) {
  EXPECT_EQ(message_of({{"cleanup.policy", "compct"}}),
            "topic orders: cleanup.policy=\"compct\" is not one of delete,compact; did you mean "
            "\"compact\"?");
}

TEST(ParseNumber, TakesPlainDecimalOnly) {
  for (const std::string_view text : {"", "-", "+5", " 5", "5 ", "5.0", "5e3", "0x10", "1_000",
                                      "1,000", "5k", "--5", "\xd9\xa5"}) {
    const Result<std::int64_t> number = internal::parse_number("n", text, 0, 10);
    ASSERT_FALSE(number.ok()) << text;
    EXPECT_EQ(number.error().message(),
              "n=\"" + std::string(text) + "\" is not a number; give plain digits, 0 to 10");
  }
  EXPECT_EQ(internal::parse_number("n", "007", 0, 10).value(), 7);
  EXPECT_EQ(internal::parse_number("n", "-0", 0, 10).value(), 0);
}

TEST(ParseNumber, KnowsItsRange) {
  EXPECT_EQ(internal::parse_number("n", "9223372036854775807", INT64_MIN, INT64_MAX).value(),
            INT64_MAX);
  EXPECT_EQ(internal::parse_number("n", "-9223372036854775808", INT64_MIN, INT64_MAX).value(),
            INT64_MIN);
  EXPECT_EQ(internal::parse_number("n", "0", 0, 10).value(), 0);
  EXPECT_EQ(internal::parse_number("n", "10", 0, 10).value(), 10);
  EXPECT_EQ(
      internal::parse_number("n", "9223372036854775808", INT64_MIN, INT64_MAX).error().message(),
      "n=\"9223372036854775808\" is out of range; give any 64-bit number");
  EXPECT_EQ(internal::parse_number("n", "11", 0, 10).error().message(),
            "n=\"11\" is out of range; give 0 to 10");
  EXPECT_EQ(internal::parse_number("n", "-1", 0, INT64_MAX).error().message(),
            "n=\"-1\" is out of range; give 0 or more");
  EXPECT_EQ(internal::parse_number("n", "1", INT64_MIN, 0).error().message(),
            "n=\"1\" is out of range; give 0 or less");
}

TEST(ParseFlag, TakesTrueAndFalseOnly) {
  EXPECT_TRUE(internal::parse_flag("f", "true").value());
  EXPECT_FALSE(internal::parse_flag("f", "false").value());
  for (const std::string_view text : {"", "1", "0", "yes", "TRUE", " true", "true\n"}) {
    EXPECT_FALSE(internal::parse_flag("f", text).ok()) << text;
  }
}

TEST(CheckChoice, MatchesWholeChoices) {
  EXPECT_TRUE(internal::check_choice("c", "gzip", "none,gzip,zstd").ok());
  EXPECT_TRUE(internal::check_choice("c", "zstd", "none,gzip,zstd").ok());
  EXPECT_TRUE(internal::check_choice("c", "whatever", "").ok());
  EXPECT_FALSE(internal::check_choice("c", "gzi", "none,gzip,zstd").ok());
  EXPECT_FALSE(internal::check_choice("c", "none,gzip", "none,gzip,zstd").ok());
  EXPECT_FALSE(internal::check_choice("c", "", "none,gzip,zstd").ok());
}

TEST(NearestName, FindsOneEditAndOneMoreForEachFourCharacters) {
  const std::array<std::string_view, 4> names{"segment.bytes", "segment.ms", "flush.messages",
                                              "id"};

  EXPECT_EQ(nearest_name("segment.bytes", names), "segment.bytes");
  EXPECT_EQ(nearest_name("segmnet.bytes", names), "segment.bytes");  // one swap
  EXPECT_EQ(nearest_name("segmen.byte", names), "segment.bytes");    // two missing
  EXPECT_EQ(nearest_name("segment.m", names), "segment.ms");
  EXPECT_EQ(nearest_name("segment.nbytess", names), "segment.bytes");
  EXPECT_EQ(nearest_name("di", names), "id");
  EXPECT_EQ(nearest_name("ab", names), "");
  EXPECT_EQ(nearest_name("completely.different", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(1'000'000, 'x'), names), "");
  EXPECT_EQ(nearest_name("x", std::span<const std::string_view>()), "");
}

TEST(Settings, CutLongTextInMessages) {
  const std::string message = message_of({{"retention.ms", std::string(5000, '7') + "x"}});

  EXPECT_LT(message.size(), 300U);
  EXPECT_NE(message.find("777...\" is not a number"), std::string::npos);
}

}  // namespace
}  // namespace weir
