#include "log/record/batch_json.h"

#include "tests/log/record/fixtures.h"

namespace weir::log {
namespace {

TEST(BytesJson, TellsNullEmptyHexAndLongApart) {
  EXPECT_EQ(bytes_json(NullableBytes()).dump(), "null");
  EXPECT_EQ(bytes_json(ByteView("")).dump(), "\"\"");
  EXPECT_EQ(bytes_json(ByteView("\x00\xffz", 3)).dump(), "\"00ff7a\"");
  EXPECT_EQ(bytes_json(ByteView(std::string(512, '\0'))).dump(),
            '"' + std::string(1024, '0') + '"');
  // hashlib.sha256(b'\0' * 513)
  EXPECT_EQ(bytes_json(ByteView(std::string(513, '\0')))["length"], 513);
  EXPECT_EQ(bytes_json(ByteView(std::string(513, '\0')))["sha256"],
            "8ae7498b01f40e9d2a04df8a8a91cc0b180eb9eb64b78129f59a6d6ab547816b");
}

TEST(RecordJson, WritesFieldsInTheOrderOfKafkasTools) {
  Headers headers;
  headers.add("name", ByteView("v"));
  headers.add("\xff", NullableBytes());
  BatchHeader header;
  header.base_offset = Offset(10);
  header.base_sequence = 2147483646;
  RecordView record;
  record.key = ByteView("k");
  record.offset = Offset(12);
  record.timestamp = 5;
  record.headers = headers.view();

  EXPECT_EQ(record_json(header, record).dump(),
            R"({"offset":12,"timestamp":5,"sequence":0,"key":"6b","value":null,)"
            R"("headers":[["name","76"],[")"
            "\xef\xbf\xbd"
            R"(",null]]})");
}

TEST(BatchJson, NamesUnknownCodecsAndTheDeleteHorizon) {
  BatchHeader header;
  header.attributes = 0x0045;
  header.base_timestamp = 99;
  header.batch_length = 49;

  const auto json = batch_json(header);

  EXPECT_EQ(json["codec"], "unknown 5");
  EXPECT_EQ(json["deleteHorizonMs"], 99);
  EXPECT_EQ(json["size"], 61);
  EXPECT_EQ(json["lastSequence"], -1);
}

}  // namespace
}  // namespace weir::log
