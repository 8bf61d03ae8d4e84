#pragma once

#include <weir/runtime/types.h>

#include <optional>
#include <string_view>

namespace weir::log {

// The partition that a folder of this name holds: "orders-3" is partition 3 of orders, "a-7-0"
// partition 0 of a-7; nullopt for what names no partition ("orders-3.4f..-delete").
std::optional<TopicPartition> parse_partition_folder(std::string_view folder);

}  // namespace weir::log
