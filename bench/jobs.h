#pragma once

#include "bench/harness.h"

#include <vector>

namespace weir::bench {

std::vector<Case> append_cases();
std::vector<Case> replay_cases();
std::vector<Case> tail_cases();
std::vector<Case> compaction_cases();
std::vector<Case> compression_cases();
std::vector<Case> many_topics_cases();
std::vector<Case> many_consumers_cases();
std::vector<Case> group_cases();
std::vector<Case> transaction_cases();
std::vector<Case> durable_cases();
std::vector<Case> restart_cases();
std::vector<Case> partitions_cases();
std::vector<Case> store_hot_cases();
std::vector<Case> store_cold_cases();
std::vector<Case> store_big_cases();
std::vector<Case> scan_cases();
std::vector<Case> restore_cases();
std::vector<Case> count_cases();
std::vector<Case> word_count_cases();
std::vector<Case> averages_cases();
std::vector<Case> sessions_cases();

}  // namespace weir::bench
