// Writes safetensors files, well formed or not.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// 8 bytes, little-endian.
inline std::string length_prefix(uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes;
}

// A file with this header text, its true length before it, and these bytes behind it.
inline std::string safetensors_file(std::string_view header, std::string_view data = {}) {
  return length_prefix(header.size()) + std::string(header) + std::string(data);
}

// Collects tensors one behind the other.
class SafetensorsBuilder {
 public:
  // `shape` as JSON, "[2, 3]"; `data` has the bytes that it asks for.
  SafetensorsBuilder& add(std::string_view name, std::string_view dtype, std::string_view shape,
                          std::string_view data) {
    const size_t begin = data_.size();
    data_ += data;
    if (!rows_.empty()) rows_ += ", ";
    rows_ += "\"" + std::string(name) + "\": {\"dtype\": \"" + std::string(dtype) +
             "\", \"shape\": " + std::string(shape) + ", \"data_offsets\": [" +
             std::to_string(begin) + ", " + std::to_string(data_.size()) + "]}";
    return *this;
  }

  std::string header() const { return "{" + rows_ + "}"; }
  std::string file() const { return safetensors_file(header(), data_); }

 private:
  std::string rows_;
  std::string data_;
};

}  // namespace tessera
