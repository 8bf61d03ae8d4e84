#include "log/record/record_reader.h"

namespace weir::log {

namespace internal {

Number read_long_number32(const char* in) {
  std::uint32_t raw = 0;
  const char* const next = read_uvarint32(in, in + 10, &raw);
  return {next, raw};
}

Number read_long_number64(const char* in) {
  std::uint64_t raw = 0;
  const char* const next = read_uvarint64(in, in + 10, &raw);
  return {next, raw};
}

}  // namespace internal

namespace {

// The fields one after the other; the first that does not fit is the fault.
class FieldReader {
 public:
  FieldReader(const char* in, const char* end) : in_(in), end_(end) {}

  bool read(std::int32_t* value, const char* fault) {
    return advance(read_varint(in_, end_, value), fault);
  }
  bool read(std::int64_t* value, const char* fault) {
    return advance(read_varlong(in_, end_, value), fault);
  }
  // A negative length has no bytes and is null.
  bool read_bytes(std::int32_t length, NullableBytes& bytes, const char* fault) {
    if (length > end_ - in_) {
      fault_ = fault;
      return false;
    }
    bytes = NullableBytes();
    if (length >= 0) {
      bytes = ByteView(in_, static_cast<std::size_t>(length));
      in_ += length;
    }
    odd_length_ = odd_length_ || length < -1;
    return true;
  }
  bool skip_byte(const char* fault) { return advance(in_ == end_ ? nullptr : in_ + 1, fault); }
  bool fail(const char* fault) {
    fault_ = fault;
    return false;
  }

  const char* position() const { return in_; }
  std::int64_t left() const { return end_ - in_; }
  const char* fault() const { return fault_; }
  bool odd_length() const { return odd_length_; }

 private:
  bool advance(const char* next, const char* fault) {
    if (next == nullptr) {
      fault_ = fault;
      return false;
    }
    in_ = next;
    return true;
  }

  const char* in_;
  const char* end_;
  const char* fault_ = nullptr;
  bool odd_length_ = false;
};

bool skip_headers(FieldReader& fields, std::int32_t count) {
  if (count < 0) {
    return fields.fail("the count of headers is negative");
  }
  if (count > fields.left()) {
    return fields.fail("the count of headers is larger than the bytes left");
  }
  NullableBytes bytes;
  for (std::int32_t i = 0; i < count; ++i) {
    std::int32_t length = 0;
    if (!fields.read(&length, "a header name's length is cut or too long")) {
      return false;
    }
    if (length < 0) {
      return fields.fail("a header name's length is negative");
    }
    if (!fields.read_bytes(length, bytes, "a header name is longer than the record") ||
        !fields.read(&length, "a header value's length is cut or too long")) {
      return false;
    }
    if (length < -1) {
      // HeadersView's promise: -1 is the only null.
      return fields.fail("a header value's length is below -1");
    }
    if (!fields.read_bytes(length, bytes, "a header value is longer than the record")) {
      return false;
    }
  }
  return true;
}

bool read_body(FieldReader& fields, RawRecord& record) {
  std::int32_t length = 0;
  if (!fields.skip_byte("the record has no attributes") ||
      !fields.read(&record.timestamp_delta, "timestampDelta is cut or too long") ||
      !fields.read(&record.offset_delta, "offsetDelta is cut or too long") ||
      !fields.read(&length, "the key's length is cut or too long") ||
      !fields.read_bytes(length, record.key, "the key is longer than the record") ||
      !fields.read(&length, "the value's length is cut or too long") ||
      !fields.read_bytes(length, record.value, "the value is longer than the record") ||
      !fields.read(&record.header_count, "the count of headers is cut or too long")) {
    return false;
  }
  record.headers = fields.position();
  if (!skip_headers(fields, record.header_count)) {
    return false;
  }
  record.odd_length = fields.odd_length();
  return true;
}

}  // namespace

const char* read_record_carefully(const char* in, const char* end, RawRecord& record,
                                  const char** fault) {
  std::int32_t length = 0;
  const char* const body = read_varint(in, end, &length);
  if (body == nullptr) {
    *fault = in == end ? "the batch ends before it" : "the record's length is cut or too long";
    return nullptr;
  }
  if (length < 0) {
    *fault = "the record's length is negative";
    return nullptr;
  }
  if (length > end - body) {
    *fault = "the record is longer than the bytes left in the batch";
    return nullptr;
  }
  FieldReader fields(body, body + length);
  if (!read_body(fields, record)) {
    *fault = fields.fault();
    return nullptr;
  }
  if (fields.left() != 0) {
    *fault = "the record has bytes behind its last field";
    return nullptr;
  }
  return fields.position();
}

}  // namespace weir::log
