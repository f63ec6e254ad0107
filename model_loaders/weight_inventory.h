// What a model needs, compared with what its checkpoint has, before anything is loaded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/tensor/shape.h"
#include "model_loaders/checkpoint.h"
#include "model_loaders/model_config.h"

namespace tessera {

struct ExpectedWeight {
  std::string name;
  Shape shape;
  std::string_view shape_fields;  // "[vocab_size, hidden_size]": the fields that give the shape
};

// Every tensor of the model, in the order of the forward pass. No output matrix when
// tie_word_embeddings is true.
std::vector<ExpectedWeight> expected_weights(const ModelConfig& config);

// Names of expected tensors that the checkpoint has not, in the same order. The output matrix comes
// with the rule that asked for it: "lm_head.weight (tie_word_embeddings is false)".
std::vector<std::string> missing_weights(const Checkpoint& checkpoint, const ModelConfig& config);

// Names of tensors that the model does not use, made printable. Leaves out is_ignorable_weight()
// and the copy of the embedding that some tied models store as output matrix.
std::vector<std::string> unexpected_weights(const Checkpoint& checkpoint,
                                            const ModelConfig& config);

// Throws Error for the first tensor whose shape differs, with both shapes and the fields of
// config.json that give the expected one. Missing tensors are not its concern.
void check_weight_shapes(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace tessera
