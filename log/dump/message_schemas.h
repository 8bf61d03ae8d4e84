#pragma once

#include "log/dump/message_schema.h"

namespace weir::log {

// __cluster_metadata, by the type in a record's frame.
std::span<const MessageSchema> metadata_schemas();
// Control records of the metadata log, by control type.
std::span<const MessageSchema> control_schemas();

// __consumer_offsets, by the type in front of a record's key. A type of which only the key is known
// has no value schema.
std::span<const MessageSchema> offsets_key_schemas();
std::span<const MessageSchema> offsets_value_schemas();
// What consumers put into a classic group's members.
const MessageSchema& consumer_subscription_schema();
const MessageSchema& consumer_assignment_schema();

// __transaction_state.
std::span<const MessageSchema> transaction_key_schemas();
std::span<const MessageSchema> transaction_value_schemas();

}  // namespace weir::log
