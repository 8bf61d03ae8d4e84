#include <weir/state/protobuf_serde.h>

#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message_lite.h>

#include <limits>

namespace weir::internal {

void write_protobuf(const google::protobuf::MessageLite& message, std::string& out) {
  google::protobuf::io::StringOutputStream stream(&out);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  // Fails only above 2 GiB, which no record holds (the sink refuses it).
  message.SerializePartialToCodedStream(&coded);
}

Status read_protobuf(ByteView bytes, google::protobuf::MessageLite& message) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error(Errc::kCorrupt,
                 fmt::format("{} bytes are no protobuf message {}; was the topic or store written "
                             "with another type?",
                             bytes.size(), message.GetTypeName()));
  }
  return {};
}

}  // namespace weir::internal
