// Files of keys and values made by hand, for tests.
#pragma once

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "model_loaders/kv_file.h"

namespace tessera {

inline constexpr KvLayout kSmallLayout = {
    .dtype = DType::kFloat32, .num_layers = 2, .num_kv_heads = 1, .page_size = 4, .head_dim = 2};

// A header whose text, tokens and pages have not been written.
inline KvFileHeader small_header() {
  return {.model_fingerprint = std::string(64, 'a'), .layout = kSmallLayout};
}

// The bytes of a file of two pages in each tensor; page i of all is full of the byte i.
inline std::string small_kv_file(const std::string& text = "{\"messages\": []}") {
  std::string bytes;
  std::vector<int32_t> tokens(8);
  std::iota(tokens.begin(), tokens.end(), 5);
  KvFileWriter writer(small_header(), text, tokens, {},
                      [&bytes](std::string_view more) { bytes += more; });
  const size_t num_pages = 2 * kSmallLayout.num_tensors();
  for (size_t page = 0; page < num_pages; ++page) {
    writer.write_pages(std::vector(kSmallLayout.page_bytes(), static_cast<std::byte>(page)));
  }
  writer.finish();
  return bytes;
}

}  // namespace tessera
