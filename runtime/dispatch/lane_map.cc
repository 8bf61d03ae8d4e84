#include <weir/runtime/lane_map.h>
#include <weir/runtime/varint.h>

#include <fmt/core.h>

#include <algorithm>
#include <optional>

namespace weir {

namespace {

// Body layouts. 2 (run lengths) and bit 7 (zstd) of session-workers 2.4 are never written.
enum class Layout : unsigned char { kDeltas = 0, kBitmap = 1, kSessions = 3 };

constexpr std::size_t kHashBytes = 5;

struct Encoded {
  std::string bytes;
  Offset last;
};

void append_uvarint(std::string& out, std::uint64_t value) {
  char bytes[10];
  out.append(bytes, write_uvarint(bytes, value));
}

std::uint64_t distance(Offset from, Offset to) {
  return static_cast<std::uint64_t>(to.value() - from.value());
}

// layout | base | attempts: count, (delta, count)* | span; the body follows.
std::string head(const LaneMap& map, Layout layout, Offset last) {
  std::string out(1, static_cast<char>(layout));
  append_uvarint(out, static_cast<std::uint64_t>(map.base.value()));
  const std::size_t count = std::min(map.attempts.size(), kLaneMapAttemptsMax);
  append_uvarint(out, count);
  for (std::size_t i = 0; i < count; ++i) {
    append_uvarint(out, distance(map.base, map.attempts[i].offset));
    out += static_cast<char>(map.attempts[i].count);
  }
  append_uvarint(out, distance(map.base, last) + 1);
  if (layout == Layout::kSessions) {
    out += static_cast<char>(map.extractor >> 8U);
    out += static_cast<char>(map.extractor & 0xffU);
  }
  return out;
}

// The span of a cut map is shorter, never longer: the head is made for the whole first.
std::size_t body_room(const LaneMap& map, Layout layout, std::size_t bytes_max) {
  const std::size_t taken = head(map, layout, map.last).size();
  return bytes_max > taken ? bytes_max - taken : 0;
}

Encoded encode_deltas(const LaneMap& map, std::size_t bytes_max) {
  const std::size_t room = body_room(map, Layout::kDeltas, bytes_max);
  std::string body;
  Offset last = map.last;
  Offset before = map.base;
  for (const Offset offset : map.unfinished) {
    const std::uint64_t delta = distance(before, offset);
    if (body.size() + uvarint_size(delta) > room) {
      last = offset.plus(-1);
      break;
    }
    append_uvarint(body, delta);
    before = offset;
  }
  return {head(map, Layout::kDeltas, last) + body, last};
}

Encoded encode_bitmap(const LaneMap& map, std::size_t bytes_max) {
  const std::uint64_t room = body_room(map, Layout::kBitmap, bytes_max);
  const std::uint64_t span = std::min(distance(map.base, map.last) + 1, room * 8);
  std::string body((span + 7) / 8, '\0');
  for (const Offset offset : map.unfinished) {
    const std::uint64_t bit = distance(map.base, offset);
    if (bit >= span) {
      break;
    }
    body[bit / 8] = static_cast<char>(static_cast<unsigned char>(body[bit / 8]) | 1U << (bit % 8));
  }
  const Offset last = map.base.plus(static_cast<std::int64_t>(span) - 1);
  return {head(map, Layout::kBitmap, last) + body, last};
}

Encoded encode_sessions(const LaneMap& map, std::size_t bytes_max) {
  const std::size_t room = body_room(map, Layout::kSessions, bytes_max);
  std::string body;
  Offset last = map.last;
  Offset before = map.base;
  for (const LaneMap::Head& session : map.heads) {
    const std::uint64_t delta = distance(before, session.first_unfinished);
    if (body.size() + kHashBytes + uvarint_size(delta) > room) {
      last = session.first_unfinished.plus(-1);
      break;
    }
    for (unsigned shift = 0; shift < 8 * kHashBytes; shift += 8) {
      body += static_cast<char>(session.session_hash >> shift & 0xffU);
    }
    append_uvarint(body, delta);
    before = session.first_unfinished;
  }
  return {head(map, Layout::kSessions, last) + body, last};
}

// Reads what the functions above write; `ok` stays false once the bytes end too early.
struct Reader {
  const char* in = nullptr;
  const char* end = nullptr;
  bool ok = true;

  std::size_t left() const { return static_cast<std::size_t>(end - in); }
  std::uint64_t uvarint() {
    std::uint64_t value = 0;
    const char* const next = ok ? read_uvarint64(in, end, &value) : nullptr;
    ok = next != nullptr;
    in = ok ? next : in;
    return ok ? value : 0;
  }
  std::uint8_t byte() {
    ok = ok && in != end;
    return ok ? static_cast<std::uint8_t>(*in++) : std::uint8_t{0};
  }
  // An offset `delta` above `from`; not ok when that is no offset.
  Offset offset_from(Offset from) {
    const std::uint64_t delta = uvarint();
    ok = ok && delta <= static_cast<std::uint64_t>(INT64_MAX - 1 - from.value());
    return ok ? from.plus(static_cast<std::int64_t>(delta)) : from;
  }
};

void read_deltas(Reader& in, LaneMap& map) {
  Offset before = map.base;
  while (in.ok && in.left() > 0) {
    const Offset offset = in.offset_from(before);
    in.ok = in.ok && offset <= map.last && (map.unfinished.empty() || offset > before);
    map.unfinished.push_back(offset);
    before = offset;
  }
}

void read_bitmap(Reader& in, LaneMap& map) {
  const std::uint64_t span = distance(map.base, map.last) + 1;
  in.ok = in.ok && span <= 8 * static_cast<std::uint64_t>(in.left()) && (span + 7) / 8 == in.left();
  for (std::uint64_t bit = 0; in.ok && bit < span; ++bit) {
    if ((static_cast<unsigned char>(in.in[bit / 8]) >> (bit % 8) & 1U) != 0) {
      map.unfinished.push_back(map.base.plus(static_cast<std::int64_t>(bit)));
    }
  }
}

void read_sessions(Reader& in, LaneMap& map) {
  map.form = LaneMap::Form::kSessions;
  map.extractor = static_cast<std::uint16_t>(in.byte() << 8U);
  map.extractor = static_cast<std::uint16_t>(map.extractor | in.byte());
  Offset before = map.base;
  while (in.ok && in.left() > 0) {
    LaneMap::Head session;
    for (unsigned shift = 0; shift < 8 * kHashBytes; shift += 8) {
      session.session_hash |= static_cast<std::uint64_t>(in.byte()) << shift;
    }
    session.first_unfinished = in.offset_from(before);
    before = session.first_unfinished;
    in.ok = in.ok && before <= map.last &&
            (map.heads.empty() || before > map.heads.back().first_unfinished);
    map.heads.push_back(session);
  }
}

void read_head(Reader& in, LaneMap& map) {
  map.base = in.offset_from(Offset(0));
  const std::uint64_t count = in.uvarint();
  in.ok = in.ok && count <= kLaneMapAttemptsMax;
  for (std::uint64_t i = 0; in.ok && i < count; ++i) {
    const Offset offset = in.offset_from(map.base);
    map.attempts.push_back({offset, in.byte()});
  }
  map.last = in.offset_from(map.base).plus(-1);
}

}  // namespace

std::string encode_lane_map(std::span<const LaneMap> forms, std::size_t bytes_max) {
  std::optional<Encoded> best;
  const auto offer = [&](Encoded candidate, const LaneMap& map) {
    const bool is_useful = candidate.last >= map.base || !map.attempts.empty();
    if (!is_useful || candidate.bytes.size() > bytes_max) {
      return;
    }
    if (!best.has_value() || candidate.last > best->last ||
        (candidate.last == best->last && candidate.bytes.size() < best->bytes.size())) {
      best = std::move(candidate);
    }
  };
  for (const LaneMap& map : forms) {
    if (map.form == LaneMap::Form::kSessions) {
      offer(encode_sessions(map, bytes_max), map);
    } else {
      offer(encode_deltas(map, bytes_max), map);
      offer(encode_bitmap(map, bytes_max), map);
    }
  }
  return best.has_value() ? std::move(best->bytes) : std::string();
}

Result<LaneMap> decode_lane_map(std::string_view bytes) {
  Reader in{bytes.data(), bytes.data() + bytes.size()};
  const std::uint8_t layout = in.byte();
  LaneMap map;
  read_head(in, map);
  switch (static_cast<Layout>(layout)) {
    case Layout::kDeltas:
      read_deltas(in, map);
      break;
    case Layout::kBitmap:
      read_bitmap(in, map);
      break;
    case Layout::kSessions:
      read_sessions(in, map);
      break;
    default:
      return Error(Errc::kUnsupported,
                   fmt::format("a lane map has layout {}; 0, 1 and 3 are known", layout));
  }
  if (!in.ok) {
    return Error(Errc::kCorrupt,
                 fmt::format("a lane map of {} bytes is damaged; it is not used and the records "
                             "behind the committed offset run again",
                             bytes.size()));
  }
  return map;
}

}  // namespace weir
