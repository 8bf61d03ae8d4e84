#pragma once

#include <weir/operators/app.h>
#include <weir/operators/stream_builder.h>
#include <weir/runtime/backend.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The pipeline that is crashed: numbered lines -> words -> counts -> a topic of counts.
namespace weir::crash {

inline constexpr const char* kApplicationId = "wc";
inline constexpr const char* kLinesTopic = "lines";
inline constexpr const char* kCountsTopic = "word-counts";
inline constexpr const char* kRepartitionTopic = "wc-counts-repartition";
inline constexpr const char* kChangelogTopic = "wc-counts-changelog";
inline constexpr const char* kStoreName = "counts";
inline constexpr std::int32_t kPartitions = 2;

using Counts = std::map<std::string, std::int64_t, std::less<>>;

// "<number> word word word"; the words follow from the number.
std::string line_of(std::int64_t number);
// nullopt for what is no such line.
std::optional<std::int64_t> number_of(std::string_view line);
std::vector<std::string> words_of(const std::string& line);

Topology word_pipeline();
// Makes the topics, the internal ones too, with segments that roll every few batches. Topics that
// exist stay.
Status make_topics(Admin& admin);

}  // namespace weir::crash
