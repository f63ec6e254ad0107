// The wire format of protocol buffers: enough to read a message that may be hostile and to write
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

enum class WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct ProtobufField {
  uint32_t number = 0;
  WireType type = WireType::kVarint;
  uint64_t value = 0;      // of every type but kBytes
  std::string_view bytes;  // of kBytes
};

// Walks the fields of one message in file order; nested messages are fields of type kBytes, to be
// walked by another reader. Never reads past `message`.
class ProtobufReader {
 public:
  // `name` (of the file) begins every error message.
  ProtobufReader(std::string_view message, std::string_view name)
      : rest_(message), size_bytes_(message.size()), name_(name) {}

  // The next field, or nothing at the end. Throws Error where the message is malformed.
  std::optional<ProtobufField> next();

 private:
  uint64_t read_varint();
  uint64_t read_fixed(size_t num_bytes);
  std::string_view take(uint64_t num_bytes);
  [[noreturn]] void fail(std::string_view reason) const;

  std::string_view rest_;
  size_t size_bytes_;
  std::string_view name_;
};

// Each appends one field to `message`.
void write_varint(std::string& message, uint32_t field, uint64_t value);
void write_float(std::string& message, uint32_t field, float value);
void write_bytes(std::string& message, uint32_t field, std::string_view bytes);

}  // namespace tessera
