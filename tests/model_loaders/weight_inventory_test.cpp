#include "model_loaders/weight_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loaders/model_files.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

// The checkpoint whose only file is `bytes`.
Checkpoint open(const std::string& bytes) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", bytes);
  return Checkpoint::open(folder.path());
}

TEST(WeightInventory, AcceptsACompleteCheckpoint) {
  const ModelConfig config = tiny_config();
  const Checkpoint checkpoint = open(tiny_weights(config));
  EXPECT_THAT(missing_weights(checkpoint, config), IsEmpty());
  EXPECT_THAT(unknown_weights(checkpoint, config), IsEmpty());
  check_weight_shapes(checkpoint, config);
  EXPECT_THAT(check_weight_inventory(checkpoint, config, false), IsEmpty());
}

TEST(WeightInventory, NamesMissingWeights) {
  const ModelConfig config = tiny_config();
  const Checkpoint checkpoint = open(tiny_weights(config, [](const std::string& name) {
    return !name.ends_with("mlp.up_proj.weight") && name != "lm_head.weight";
  }));
  EXPECT_THAT(missing_weights(checkpoint, config),
              ElementsAre("model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight",
                          "lm_head.weight (tie_word_embeddings is false)"));
}

TEST(WeightInventory, NeedsNoOutputMatrixWhenTied) {
  ModelConfig config = tiny_config();
  config.ties_embeddings = true;
  EXPECT_THAT(missing_weights(open(tiny_weights(config)), config), IsEmpty());
  // Some tied models store a copy all the same.
  EXPECT_THAT(unknown_weights(open(tiny_weights(tiny_config())), config), IsEmpty());
}

TEST(WeightInventory, NamesUnknownWeights) {
  const ModelConfig config = tiny_config();
  const auto all = [](const std::string&) { return true; };
  const Checkpoint checkpoint = open(tiny_weights(
      config, all,
      {"model.layers.0.self_attn.rotary_emb.inv_freq",
       "model.layers.99999999999.mlp.up_proj.weight", "model.layers.-1.mlp.up_proj.weight",
       "model.layers.2.mlp.up_proj.weight", "\\u001b[2J"}));
  EXPECT_THAT(unknown_weights(checkpoint, config),
              ElementsAre("\\x1b[2J", "model.layers.-1.mlp.up_proj.weight",
                          "model.layers.2.mlp.up_proj.weight",
                          "model.layers.99999999999.mlp.up_proj.weight"));
}

// Tensors of another block, here Qwen 3's, whose answers would be wrong without them.
TEST(WeightInventory, RefusesUnknownWeightsUnlessAllowed) {
  const ModelConfig config = tiny_config();
  std::vector<std::string> norms;
  for (const char* const layer : {"0", "1"}) {
    for (const char* const name : {"q", "k", "qk"}) {
      norms.push_back(concat("model.layers.", layer, ".self_attn.", name, "_norm.weight"));
    }
  }
  const auto all = [](const std::string&) { return true; };
  const Checkpoint checkpoint = open(tiny_weights(config, all, norms));
  const ThrownError error =
      thrown_error([&] { check_weight_inventory(checkpoint, config, false); });
  EXPECT_THAT(
      error.message,
      EndsWith("model.safetensors: 6 tensors are not used by this model, results may be wrong: "
               "model.layers.0.self_attn.k_norm.weight, model.layers.0.self_attn.q_norm.weight, "
               "model.layers.0.self_attn.qk_norm.weight, model.layers.1.self_attn.k_norm.weight, "
               "model.layers.1.self_attn.q_norm.weight, ..."));
  EXPECT_THAT(error.hint, HasSubstr("--allow-unknown-weights"));
  EXPECT_THAT(check_weight_inventory(checkpoint, config, true), ElementsAre(error.message));
}

TEST(WeightInventory, ShowsBothShapesAndTheFields) {
  ModelConfig config = tiny_config();
  const Checkpoint checkpoint = open(tiny_weights(config));
  config.num_heads = 4;
  EXPECT_THAT(thrown_error([&] { check_weight_shapes(checkpoint, config); }).message,
              HasSubstr("model.safetensors: tensor 'model.layers.0.self_attn.q_proj.weight' has "
                        "shape [8, 8], expected [16, 8] = "
                        "[num_attention_heads * head_dim, hidden_size] of config.json"));
}

}  // namespace
}  // namespace tessera
