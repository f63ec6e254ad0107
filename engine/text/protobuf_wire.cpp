#include "engine/text/protobuf_wire.h"

#include <bit>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

constexpr uint64_t kMaxFieldNumber = (uint64_t{1} << 29) - 1;

void append_varint(std::string& message, uint64_t value) {
  for (; value >= 0x80; value >>= 7) message += static_cast<char>(value | 0x80);
  message += static_cast<char>(value);
}

void append_tag(std::string& message, uint32_t field, WireType type) {
  append_varint(message, uint64_t{field} << 3 | static_cast<uint64_t>(type));
}

}  // namespace

std::optional<ProtobufField> ProtobufReader::next() {
  if (rest_.empty()) return std::nullopt;
  const uint64_t tag = read_varint();
  if (tag >> 3 == 0 || tag >> 3 > kMaxFieldNumber) fail("impossible field number");
  ProtobufField field{static_cast<uint32_t>(tag >> 3), static_cast<WireType>(tag & 7)};
  switch (field.type) {
    case WireType::kVarint:
      field.value = read_varint();
      return field;
    case WireType::kFixed64:
      field.value = read_fixed(8);
      return field;
    case WireType::kBytes:
      field.bytes = take(read_varint());
      return field;
    case WireType::kFixed32:
      field.value = read_fixed(4);
      return field;
  }
  fail("unknown wire type");
}

uint64_t ProtobufReader::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    if (shift == 63 && byte > 1) break;
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  fail("number of more than 64 bits");
}

uint64_t ProtobufReader::read_fixed(size_t num_bytes) {
  const std::string_view bytes = take(num_bytes);
  uint64_t value = 0;
  for (size_t i = num_bytes; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return value;
}

std::string_view ProtobufReader::take(uint64_t num_bytes) {
  if (num_bytes > rest_.size()) fail("ends in the middle of a field");
  const std::string_view taken = rest_.substr(0, num_bytes);
  rest_.remove_prefix(num_bytes);
  return taken;
}

void ProtobufReader::fail(std::string_view reason) const {
  throw Error(concat(name_, ": ", reason, " (byte ", size_bytes_ - rest_.size(),
                     " of a message of ", size_bytes_, ")"));
}

void write_varint(std::string& message, uint32_t field, uint64_t value) {
  append_tag(message, field, WireType::kVarint);
  append_varint(message, value);
}

void write_float(std::string& message, uint32_t field, float value) {
  append_tag(message, field, WireType::kFixed32);
  const auto bits = std::bit_cast<uint32_t>(value);
  for (int shift = 0; shift < 32; shift += 8) message += static_cast<char>(bits >> shift);
}

void write_bytes(std::string& message, uint32_t field, std::string_view bytes) {
  append_tag(message, field, WireType::kBytes);
  append_varint(message, bytes.size());
  message += bytes;
}

}  // namespace tessera
