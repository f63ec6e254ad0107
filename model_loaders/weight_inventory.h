// What a model needs, compared with what its checkpoint has, before anything is loaded.
#pragma once

#include <string>
#include <vector>

#include "model_loaders/checkpoint.h"
#include "model_loaders/model_config.h"

namespace tessera {

// Of a language model that is a part of another model, only the checkpoint says how its names begin
// and whether the output matrix is one of its own (config.json says the latter in two places, of
// which libraries read different ones), unless the larger one says that nothing is tied. Fills
// these in; changes nothing in other models.
void adopt_layout(const Checkpoint& checkpoint, ModelConfig& config);

// Where tie_word_embeddings is true, but the checkpoint has an output matrix that is another than
// the embedding, it is the one that was trained: `config` is no longer tied. Returns a warning that
// says so. Where it has the output matrix alone, as safetensors' save_model() writes it, `config`
// says that this is the embedding.
std::vector<std::string> adopt_output_matrix(const Checkpoint& checkpoint, ModelConfig& config);

// A line for each part of the model around the language model that has tensors in the checkpoint:
// "436 tensors of the vision tower, 0.87 GB".
std::vector<std::string> skipped_tensors(const Checkpoint& checkpoint);

// Throws Error when the checkpoint lacks tensors of weight_specs(), has one in another shape or has
// tensors that belong to no weight: what they do would be missing from the answers. Names up to
// five and says how many there are. With `allow_unknown`, the last is a warning instead. Returns
// the checkpoint's own warnings too.
std::vector<std::string> check_weight_inventory(const Checkpoint& checkpoint,
                                                const ModelConfig& config, bool allow_unknown);

struct WeightInventory {
  std::vector<std::string> skipped;   // what skipped_tensors() returns
  std::vector<std::string> warnings;  // adopt_output_matrix()'s and check_weight_inventory()'s
};

// What whoever opens a checkpoint does first: adopt_layout(), adopt_output_matrix(), the dtype of
// the embedding where config.json says none, all of which change `config`, and then what the two
// others say of it. Throws as check_weight_inventory() does.
WeightInventory take_weight_inventory(const Checkpoint& checkpoint, ModelConfig& config,
                                      bool allow_unknown);

// Names of needed tensors that the checkpoint has not, in the order of weight_specs(). The output
// matrix comes with the rule that asked for it: "lm_head.weight (tie_word_embeddings is false)".
std::vector<std::string> missing_weights(const Checkpoint& checkpoint, const ModelConfig& config);

// Names of tensors that belong to no weight, made printable. Leaves out is_ignorable_weight(),
// skipped_tensors() and the copy of the embedding that some tied models store as output matrix.
std::vector<std::string> unknown_weights(const Checkpoint& checkpoint, const ModelConfig& config);

// Throws Error for the first tensor whose shape differs, with both shapes and the fields of
// config.json that give the needed one. Missing tensors are not its concern.
void check_weight_shapes(const Checkpoint& checkpoint, const ModelConfig& config);

}  // namespace tessera
