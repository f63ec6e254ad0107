#include "model_loaders/weight_inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model_loaders/model_files.h"
#include "tests/model_loaders/read_config.h"
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

TEST(WeightInventory, FindsTheLanguageModelInsideAnother) {
  for (const NamePrefix prefix : {NamePrefix::kLanguageModel, NamePrefix::kModelLanguageModel}) {
    for (const bool is_tied : {false, true}) {
      ModelConfig stored = tiny_config();
      stored.name_prefix = prefix;
      stored.ties_embeddings = is_tied;
      const Checkpoint checkpoint = open(tiny_weights(stored));
      ModelConfig config = tiny_config();
      config.name_prefix = NamePrefix::kLanguageModel;
      config.ties_embeddings = !is_tied;  // the checkpoint decides
      adopt_layout(checkpoint, config);
      EXPECT_EQ(config.name_prefix, prefix);
      EXPECT_EQ(config.ties_embeddings, is_tied);
      EXPECT_THAT(check_weight_inventory(checkpoint, config, false), IsEmpty());
    }
  }
  ModelConfig config = tiny_config();
  config.ties_embeddings = true;
  adopt_layout(open(tiny_weights(tiny_config())), config);
  EXPECT_TRUE(config.ties_embeddings);
}

// As transformers, which rounds the factor of Gemma's embeddings to it.
TEST(WeightInventory, TakesTheDtypeOfTensorsWhereTheConfigSaysNone) {
  const std::string sizes = R"(, "hidden_size": 10, "intermediate_size": 12, "vocab_size": 10,
      "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4)";
  for (const char* const dtype : {"", R"(, "dtype": "float32")"}) {
    ModelConfig config = config_of_type("gemma3_text", sizes + dtype);
    EXPECT_EQ(config.block.embedding_multiplier, static_cast<double>(std::sqrt(10.0f)));
    take_weight_inventory(open(tiny_weights(config)), config, false);
    const bool has_dtype = *dtype != '\0';
    EXPECT_EQ(config.dtype, has_dtype ? DType::kFloat32 : DType::kBFloat16);
    EXPECT_EQ(config.block.embedding_multiplier,
              has_dtype ? static_cast<double>(std::sqrt(10.0f)) : 3.15625);
  }
}

TEST(WeightInventory, TiesNothingInsideAModelThatIsUntied) {
  ModelConfig config = tiny_config();
  config.name_prefix = NamePrefix::kLanguageModel;
  config.is_untied = true;
  const Checkpoint checkpoint = open(tiny_weights(
      config, [](const std::string& name) { return !name.ends_with("lm_head.weight"); }));
  adopt_layout(checkpoint, config);
  EXPECT_THAT(
      thrown_error([&] { check_weight_inventory(checkpoint, config, false); }).message,
      EndsWith(
          "1 tensor is missing: language_model.lm_head.weight (tie_word_embeddings is false)"));
}

TEST(WeightInventory, SkipsTowersAndSaysSo) {
  const auto all = [](const std::string&) { return true; };
  const Checkpoint checkpoint =
      open(tiny_weights(tiny_config(), all,
                        {"vision_tower.a", "model.vision_tower.b", "mtp.layers.0.x",
                         "model.multi_modal_projector.linear_1.weight"}));
  EXPECT_THAT(unknown_weights(checkpoint, tiny_config()), IsEmpty());
  EXPECT_THAT(skipped_tensors(checkpoint),
              testing::UnorderedElementsAre("2 tensors of the vision tower, 0.00 GB",
                                            "1 tensor of the projector of images, 0.00 GB",
                                            "1 tensor of multi-token prediction, 0.00 GB"));
}

// What the checkpoint decides has to be known before its tensors are compared.
TEST(WeightInventory, AdoptsTheLayoutBeforeItIsCompared) {
  ModelConfig stored = tiny_config();
  stored.name_prefix = NamePrefix::kModelLanguageModel;
  const auto all = [](const std::string&) { return true; };
  const Checkpoint checkpoint =
      open(tiny_weights(stored, all, {"vision_tower.a", "surprise.weight"}));
  ModelConfig config = tiny_config();
  config.name_prefix = NamePrefix::kLanguageModel;
  const WeightInventory inventory = take_weight_inventory(checkpoint, config, true);
  EXPECT_EQ(config.name_prefix, NamePrefix::kModelLanguageModel);
  EXPECT_THAT(inventory.skipped, ElementsAre("1 tensor of the vision tower, 0.00 GB"));
  EXPECT_THAT(inventory.warnings, ElementsAre(HasSubstr("surprise.weight")));
}

// As transformers 5, which ties nothing then.
TEST(WeightInventory, AnOutputMatrixOfItsOwnIsNotTied) {
  ModelConfig config = tiny_config();
  config.ties_embeddings = true;
  EXPECT_THAT(take_weight_inventory(open(tiny_weights(tiny_config())), config, false).warnings,
              IsEmpty());
  EXPECT_TRUE(config.ties_embeddings);
  const auto checkpoint_of = [](const std::string& shape, const std::string& output) {
    SafetensorsBuilder builder;
    for (const WeightSource& weight : all_sources(tiny_config())) {
      const bool is_output = weight.name == "lm_head.weight";
      const auto bytes = static_cast<size_t>(weight.shape.num_elements()) * 2;
      builder.add(weight.name, "BF16", is_output ? shape : concat(weight.shape),
                  is_output ? output : std::string(bytes, 'x'));
    }
    return open(builder.file());
  };
  const Checkpoint differs = checkpoint_of("[10, 8]", std::string(159, 'x') + "y");
  EXPECT_THAT(
      take_weight_inventory(differs, config, false).warnings,
      ElementsAre(EndsWith("model.safetensors: tie_word_embeddings is true, but tensor "
                           "'lm_head.weight' is not equal to 'model.embed_tokens.weight'; both "
                           "are used, as in transformers 5")));
  EXPECT_FALSE(config.ties_embeddings);
  EXPECT_THAT(take_weight_inventory(differs, config, false).warnings, IsEmpty());
  config.ties_embeddings = true;
  const Checkpoint shorter = checkpoint_of("[9, 8]", std::string(144, 'x'));
  EXPECT_THAT(thrown_error([&] { take_weight_inventory(shorter, config, false); }).message,
              HasSubstr("tensor 'lm_head.weight' has shape [9, 8], expected [10, 8]"));
}

// As safetensors' save_model() writes tied models: of two names, it keeps the first in the
// alphabet.
TEST(WeightInventory, ATiedEmbeddingMayBeStoredAsTheOutputMatrix) {
  ModelConfig config = tiny_config();
  const Checkpoint checkpoint = open(tiny_weights(
      config, [](const std::string& name) { return name != "model.embed_tokens.weight"; }));
  EXPECT_THAT(thrown_error([&] { take_weight_inventory(checkpoint, config, false); }).message,
              EndsWith("1 tensor is missing: model.embed_tokens.weight"));
  config.ties_embeddings = true;
  EXPECT_THAT(take_weight_inventory(checkpoint, config, false).warnings, IsEmpty());
  EXPECT_TRUE(config.ties_embeddings);
  EXPECT_EQ(config.dtype, DType::kBFloat16);
  EXPECT_EQ(weight_specs(config).front().role, WeightRole::kEmbedTokens);
  EXPECT_EQ(weight_specs(config).front().sources.front().name, "lm_head.weight");

  for (const NamePrefix prefix : {NamePrefix::kLanguageModel, NamePrefix::kModelLanguageModel}) {
    ModelConfig inner = tiny_config();
    inner.name_prefix = prefix;
    const Checkpoint whole = open(tiny_weights(
        inner, [](const std::string& name) { return !name.ends_with("embed_tokens.weight"); }));
    inner.name_prefix = NamePrefix::kLanguageModel;
    ModelConfig untied = inner;
    untied.is_untied = true;
    EXPECT_THAT(thrown_error([&] { take_weight_inventory(whole, untied, false); }).message,
                EndsWith("embed_tokens.weight"));
    take_weight_inventory(whole, inner, false);
    EXPECT_EQ(inner.name_prefix, prefix);
    EXPECT_TRUE(inner.embedding_is_lm_head);
  }
}

}  // namespace
}  // namespace tessera
