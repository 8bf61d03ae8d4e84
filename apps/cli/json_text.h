#pragma once

#include <weir/runtime/record.h>
#include <weir/runtime/types.h>

#include <string>
#include <string_view>

namespace weir::cli {

// Whether the bytes are well-formed UTF-8.
bool is_utf8(std::string_view bytes);

// Two lower-case hex digits a byte.
std::string hex_text(std::string_view bytes);

// A JSON string where the bytes are UTF-8, else {"hex":"..."}; null as null.
std::string json_bytes(const NullableBytes& bytes);

// {"topic","partition","offset","timestamp","key","value","headers":[[name,value]]}
std::string json_record(const TopicPartition& partition, const RecordView& record);

// A quoted JSON string. Bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace weir::cli
