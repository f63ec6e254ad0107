// The rows of all families, kin beside each other: one function for each file of this folder.
#pragma once

#include <vector>

#include "model_loaders/model_family.h"

namespace tessera {

std::vector<ModelFamily> llama_families();      // norms before both halves, as Llama has them
std::vector<ModelFamily> qwen_families();       // Qwen 2, Qwen 3
std::vector<ModelFamily> gemma_families();      // norms before and after both halves
std::vector<ModelFamily> phi_families();        // fused tensors, LongRoPE
std::vector<ModelFamily> post_norm_families();  // norms after both halves: OLMo, EXAONE
std::vector<ModelFamily> glm_families();        // half of each head turns, neighbours together
std::vector<ModelFamily> cohere_families();     // LayerNorm, both halves beside each other

}  // namespace tessera
