// What a model's blocks compute, in words: what inspect shows of a family's options.
#pragma once

#include <string>
#include <vector>

#include "model_loaders/model_config.h"

namespace tessera {

struct ModelWords {
  std::string blocks;   // "RMSNorm before both halves, biases of q, k, v, SiLU"
  std::string windows;  // "5 of 6 layers see 1,024 tokens"; empty when all see the whole context
  std::vector<std::string> rope;     // of each table, then of layers without
  std::vector<std::string> scalars;  // "logits capped at 30", ...
};

ModelWords describe_blocks(const ModelConfig& config);

}  // namespace tessera
