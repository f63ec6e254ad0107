#include "engine/text/protobuf_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;

std::string read_error(std::string_view message) {
  ProtobufReader reader(message, "file");
  try {
    while (reader.next()) {
    }
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ProtobufWire, ReadsWhatItWrites) {
  std::string message;
  write_varint(message, 1, 0);
  write_varint(message, 20, ~uint64_t{0});
  write_float(message, 3, 1.0f);
  write_bytes(message, 4, std::string_view("a\0b", 3));
  write_bytes(message, 5, "");
  ProtobufReader reader(message, "");
  EXPECT_EQ(reader.next()->value, 0u);
  const auto varint = reader.next();
  EXPECT_EQ(varint->number, 20u);
  EXPECT_EQ(varint->value, ~uint64_t{0});
  EXPECT_EQ(reader.next()->value, 0x3F800000u);
  EXPECT_EQ(reader.next()->bytes, std::string_view("a\0b", 3));
  EXPECT_EQ(reader.next()->bytes, "");
  EXPECT_FALSE(reader.next().has_value());
}

TEST(ProtobufWire, ReadsFixed64) {
  ProtobufReader reader(std::string_view("\x09\x01\x02\0\0\0\0\0\0", 9), "");
  const auto field = reader.next();
  EXPECT_EQ(field->type, WireType::kFixed64);
  EXPECT_EQ(field->value, 0x201u);
}

TEST(ProtobufWire, RefusesMalformedMessages) {
  EXPECT_THAT(read_error("\x08"), HasSubstr("file: ends in the middle of a field (byte 1"));
  EXPECT_THAT(read_error("\x0A\x05xyz"), HasSubstr("ends in the middle"));
  EXPECT_THAT(read_error("\x0D\x01\x02"), HasSubstr("ends in the middle"));
  EXPECT_THAT(read_error("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"),
              HasSubstr("ends in the middle"));
  EXPECT_THAT(read_error("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"), HasSubstr("64 bits"));
  EXPECT_THAT(read_error(std::string_view("\0\0", 2)), HasSubstr("field number"));
  EXPECT_THAT(read_error("\xFF\xFF\xFF\xFF\xFF\xFF\x01"), HasSubstr("field number"));
  EXPECT_THAT(read_error("\x0B"), HasSubstr("wire type"));
}

}  // namespace
}  // namespace tessera
