// generation_config.json: how the model's authors suggest to sample, and where it stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// Absent fields were absent in the file. Values are checked against their ranges.
struct GenerationConfig {
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> bos_token_id;
  std::optional<bool> do_sample;
  std::optional<double> temperature;         // [0, 100]
  std::optional<int64_t> top_k;              // >= 0; 0: off
  std::optional<double> top_p;               // (0, 1]
  std::optional<double> min_p;               // [0, 1]
  std::optional<double> repetition_penalty;  // (0, 100]
};

// Reads the file; all fields absent when there is none. Throws Error naming the field, its value
// and the allowed range; token ids are in [0, vocab_size).
GenerationConfig read_generation_config(const std::string& path, int64_t vocab_size);

}  // namespace tessera
