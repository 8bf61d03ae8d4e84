#include <weir/operators/internal/table_nodes.h>

namespace weir::internal {

Result<ChangeBytes> split_change(ByteView bytes) {
  const auto damaged = [&] {
    return Error(Errc::kCorrupt,
                 "change of a table in " + std::to_string(bytes.size()) + " bytes is damaged");
  };
  if (bytes.empty()) {
    return damaged();
  }
  const ByteView body = bytes.substr(0, bytes.size() - 1);
  switch (static_cast<ChangeFlag>(bytes.back())) {
    case ChangeFlag::kOldOnly:
      return ChangeBytes{.new_value = {}, .old_value = body};
    case ChangeFlag::kNewOnly:
      return ChangeBytes{.new_value = body, .old_value = {}};
    case ChangeFlag::kBoth:
      break;
    default:
      return damaged();
  }
  std::int32_t size = 0;
  const char* end = body.data() + body.size();
  const char* after = read_varint(body.data(), end, &size);
  if (after == nullptr || size < 0 || size > end - after) {
    return damaged();
  }
  const auto new_size = static_cast<std::size_t>(size);
  return ChangeBytes{
      .new_value = ByteView(after, new_size),
      .old_value = ByteView(after + new_size, static_cast<std::size_t>(end - after) - new_size)};
}

}  // namespace weir::internal
