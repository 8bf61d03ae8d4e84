#pragma once

#include <weir/runtime/bytes.h>
#include <weir/runtime/result.h>

#include <string>
#include <string_view>

namespace weir::cli {

// Bytes of a value as text, by the name of its serde: string, short, integer, long, float, double;
// everything else as hex.
std::string value_text(std::string_view serde, ByteView bytes);
// The same as a JSON value: numbers are numbers, text is a string, the rest {"hex": ...}.
std::string value_json(std::string_view serde, ByteView bytes);
// Text typed by a person as bytes; types without a text form are typed in hex.
// Errors: kInvalidArgument names what was expected.
Result<std::string> value_bytes(std::string_view serde, std::string_view text);

}  // namespace weir::cli
