#include <weir/runtime/record.h>
#include <weir/runtime/varint.h>

#include <limits>

namespace weir {

namespace {

// Takes `length` bytes from the front of `rest`. The bytes were checked when the view was made, so
// running over the end is a broken promise and not bad input.
ByteView take(ByteView& rest, std::int32_t length) {
  WEIR_ASSERT(length >= 0 && static_cast<std::size_t>(length) <= rest.size());
  const ByteView taken = rest.substr(0, static_cast<std::size_t>(length));
  rest.remove_prefix(taken.size());
  return taken;
}

std::int32_t take_length(ByteView& rest) {
  std::int32_t length = 0;
  const char* behind = read_varint(rest.data(), rest.data() + rest.size(), &length);
  WEIR_ASSERT(behind != nullptr);
  rest.remove_prefix(static_cast<std::size_t>(behind - rest.data()));
  return length;
}

std::int32_t checked_length(std::size_t size) {
  WEIR_ASSERT(size <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()));
  return static_cast<std::int32_t>(size);
}

}  // namespace

void HeadersView::Iterator::load() {
  if (left_ == 0) {
    return;
  }
  current_.name = take(rest_, take_length(rest_));
  const std::int32_t value_length = take_length(rest_);
  current_.value = value_length == -1 ? NullableBytes() : NullableBytes(take(rest_, value_length));
}

std::optional<NullableBytes> HeadersView::last(ByteView name) const {
  std::optional<NullableBytes> found;
  for (const HeaderView& header : *this) {
    if (header.name == name) {
      found = header.value;
    }
  }
  return found;
}

void Headers::remove(ByteView name) {
  Headers kept;
  for (const HeaderView& header : view()) {
    if (header.name != name) {
      kept.add(header.name, header.value);
    }
  }
  *this = std::move(kept);
}

void Headers::add(ByteView name, NullableBytes value) {
  char length[10];
  encoded_.append(length, write_varint(length, checked_length(name.size())));
  encoded_.append(name);
  if (value.is_null()) {
    encoded_.append(length, write_varint(length, -1));
  } else {
    encoded_.append(length, write_varint(length, checked_length(value.size())));
    encoded_.append(value.view());
  }
  ++count_;
}

}  // namespace weir
