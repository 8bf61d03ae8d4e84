#pragma once

#include <weir/state/serde.h>

#include <type_traits>

namespace google::protobuf {
class MessageLite;  // completed by the message's own .pb.h
}

namespace weir {

template <class T>
concept ProtobufMessage =
    std::is_class_v<T> && std::is_base_of_v<google::protobuf::MessageLite, T> &&
    std::is_default_constructible_v<T>;

namespace internal {
// Deterministic (map fields in key order), so that equal messages are equal keys.
void write_protobuf(const google::protobuf::MessageLite& message, std::string& out);
// Errors: kCorrupt, names the message type.
Status read_protobuf(ByteView bytes, google::protobuf::MessageLite& message);
}  // namespace internal

// The message's wire format, nothing around it.
template <ProtobufMessage T>
struct Serde<T> {
  static constexpr std::string_view kName = "protobuf";
  static void write(const T& value, std::string& out) { internal::write_protobuf(value, out); }
  static Result<T> read(ByteView bytes) {
    T message;
    if (Status read = internal::read_protobuf(bytes, message); !read.ok()) {
      return std::move(read).error();
    }
    return message;
  }
};

}  // namespace weir
