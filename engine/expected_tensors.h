// The tensors that a model needs, known from its config.json alone: for whoever writes weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/options.h"

namespace tessera {

struct ExpectedTensor {
  std::string name;
  std::vector<int64_t> shape;  // outermost first
};

// In the order of the forward pass. Reads no other file of the folder that the options name. Throws
// Error as Engine::load does; appends to `warnings` what it only warns of.
std::vector<ExpectedTensor> expected_tensors(const EngineOptions& options,
                                             std::vector<std::string>& warnings);

}  // namespace tessera
