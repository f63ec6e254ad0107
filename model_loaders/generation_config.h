// generation_config.json: how the model's authors suggest to sample, and where it stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model_loaders/number_limits.h"

namespace tessera {

// What sampling can be asked for, here as by a flag or a request.
inline constexpr NumberLimits<double> kTemperatureLimits = {0.01, 100.0, Allowed::kAllAndZero};
inline constexpr NumberLimits<int64_t> kTopKLimits = {-1, int64_t{1} << 30};
inline constexpr NumberLimits<double> kTopPLimits = {0.0, 1.0, Allowed::kAllAboveLow};
inline constexpr NumberLimits<double> kMinPLimits = {0.0, 1.0};
inline constexpr NumberLimits<double> kRepetitionPenaltyLimits = {0.01, 100.0};

// Absent fields were absent in the file. Values are checked against their ranges.
struct GenerationConfig {
  std::vector<int64_t> eos_token_ids;
  std::optional<int64_t> bos_token_id;
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  std::optional<int64_t> top_k;  // 0 or, in vLLM's words, -1: off
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
};

// Reads the file; all fields absent when there is none. Throws Error naming the field, its value
// and the allowed range; token ids are those of find_token_ids().
GenerationConfig read_generation_config(const std::string& path, int64_t vocab_size,
                                        std::vector<std::string>& warnings);

}  // namespace tessera
