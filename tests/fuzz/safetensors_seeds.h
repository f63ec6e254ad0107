// Where the two safetensors targets begin.
#pragma once

#include <string>
#include <vector>

#include "tests/model_loaders/hostile_safetensors.h"
#include "tests/model_loaders/safetensors_builder.h"

namespace tessera {

inline std::vector<std::string> safetensors_seeds() {
  // Those beyond this test limits; mutating them again and again is slow and finds nothing.
  constexpr size_t kMaxBytes = 2048;
  std::vector<std::string> seeds = {
      SafetensorsBuilder().add("a", "BF16", "[2, 3]", "0123456789ab").file(),
      SafetensorsBuilder().add("a", "F32", "[]", "0123").add("b", "F16", "[1,2]", "4567").file(),
      SafetensorsBuilder().add("a", "F32", "[0, 7]", "").add("b", "F16", "[1]", "45").file(),
      SafetensorsBuilder().add("x.rotary_emb.inv_freq", "I64", "[1]", "01234567").file(),
      SafetensorsBuilder().add("x.rotary_emb.inv_freq", "F4", "[2,1]", "0").file(),
      safetensors_file(
          R"({"__metadata__": {"format": "pt", "\u0061": ""}, "w": )" + kGoodRow + "}   ", "abcd"),
      safetensors_file(R"({"__metadata__": null, "w": )" + kGoodRow + "}", "abcd"),
  };
  for (const HostileFile& file : hostile_safetensors()) {
    if (file.bytes.size() <= kMaxBytes) seeds.push_back(file.bytes);
  }
  return seeds;
}

inline std::vector<std::string> safetensors_dictionary() {
  return {"\"dtype\"",
          "\"shape\"",
          "\"data_offsets\"",
          "\"__metadata__\"",
          "[0, 4]",
          "\"F32\"",
          "\"BF16\"",
          "\"I64\"",
          "\"F4\"",
          "\"C64\"",
          "281474976710656",
          "-0",
          "18446744073709551615",
          "1e999",
          "\\u0000",
          "\\ud800",
          ".qweight",
          ".rotary_emb.inv_freq",
          "null",
          kGoodRow};
}

}  // namespace tessera
