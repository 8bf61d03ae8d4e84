#pragma once

#include <weir/log/log_dump.h>
#include <weir/runtime/record.h>

#include <nlohmann/json.hpp>

#include <string>

namespace weir::log {

// What to make of the records of a folder: kByTopic becomes the decoder of the folder's topic.
RecordDecoder decoder_for(RecordDecoder wanted, std::string_view folder_name);

// Requires everywhere: a decoder other than kByTopic and kNone. What cannot be decoded is there as
// bytes_json() shows it, beside the reason. Bounds: decode_message().

// As DumpLogSegments with one of its decoders writes a record behind its header keys:
// ` key: {"type":"2","data":{..}} payload: {"version":"3","data":{..}}`, ` payload: <DELETE>`.
std::string decoded_text(RecordDecoder decoder, const RecordView& record);

// {offset, keyType, keyName, key, valueVersion, value}; of the metadata log {offset, type, version,
// data}.
nlohmann::ordered_json decoded_json(RecordDecoder decoder, const RecordView& record);

}  // namespace weir::log
