#pragma once

#include "tests/streams_cases/case_file.h"

#include <weir/runtime/result.h>

#include <optional>
#include <string>
#include <string_view>

// Values in the notation of the case files, and their bytes as Kafka's serializers write them.
// Serdes: string, long, integer, short, double, float, boolean, uuid, bytes,
// timewindowed:string:SIZE, sessionwindowed:string.

namespace weir::streams_cases {

using MaybeBytes = std::optional<std::string>;

bool is_known_serde(std::string_view serde);

// Null gives no bytes. Numbers may be texts (Java's "NaN", "1.0E300").
// Errors: kUnsupported (no such serde), kInvalidArgument (the value is none of the type).
Result<MaybeBytes> encode(const Json& value, std::string_view serde);
// Bytes that are no value of the type give {"undecodable":hex}. Requires: is_known_serde(serde).
Json decode(const MaybeBytes& bytes, std::string_view serde);

// null, or lower-case hex.
Json hex_or_null(const MaybeBytes& bytes);
// The bytes as text; what is no UTF-8 becomes U+FFFD.
Json text_of(std::string_view bytes);

}  // namespace weir::streams_cases
