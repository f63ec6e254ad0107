#include "model_loaders/context_stretch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A model of these layers and tables that was trained for 4096 tokens.
ModelFolder trained_model(std::vector<LayerSpec> layers, std::vector<RopeTable> tables) {
  ModelFolder folder = {.path = "some/model", .config = {.max_position_embeddings = 4096}};
  folder.config.num_layers = std::ssize(layers);
  folder.config.block.layers = std::move(layers);
  folder.config.rope_tables = std::move(tables);
  return folder;
}

ModelFolder llama_with(const RopeScaling& scaling) {
  return trained_model({{}, {}}, {{.theta = 1e6, .scaling = scaling}});
}

ModelFolder stretched(ModelFolder folder, int64_t context_size) {
  stretch_context(folder, context_size);
  return folder;
}

RopeScaling yarn(double factor, int64_t original, double attention_factor) {
  return {.kind = RopeScaling::Kind::kYarn,
          .factor = factor,
          .original_max_position_embeddings = original,
          .attention_factor = attention_factor};
}

TEST(ContextStretch, WhatFitsStaysAsItIs) {
  for (const int64_t context_size : {0, 1, 4096}) {
    const ModelFolder folder = stretched(llama_with({}), context_size);
    EXPECT_EQ(folder.config.max_position_embeddings, 4096);
    EXPECT_THAT(folder.config.rope_tables, ElementsAre(RopeTable{.theta = 1e6}));
    EXPECT_FALSE(folder.config.stretch);
    EXPECT_THAT(folder.warnings, IsEmpty());
  }
}

TEST(ContextStretch, PlainRopeBecomesYarnByTheSmallestFactor) {
  const ModelFolder folder = stretched(llama_with({}), 10000);
  const ModelConfig& config = folder.config;
  const double factor = 10000.0 / 4096.0;
  const RopeTable expected = {.theta = 1e6,
                              .scaling = yarn(factor, 4096, 0.1 * std::log(factor) + 1.0)};
  EXPECT_THAT(config.rope_tables, ElementsAre(expected));
  EXPECT_EQ(config.rope_tables[0].scaling.beta_fast, 32.0);
  EXPECT_EQ(config.rope_tables[0].scaling.beta_slow, 1.0);
  EXPECT_EQ(config.max_position_embeddings, 10000);
  ASSERT_TRUE(config.stretch);
  EXPECT_EQ(config.stretch->trained_context, 4096);
  EXPECT_EQ(config.stretch->factor, factor);
  EXPECT_THAT(folder.warnings,
              ElementsAre("a context of 10000 tokens is beyond the 4096 that the model was trained "
                          "for: RoPE is stretched by YaRN, factor 2.44141"));
}

// transformers 5.17 of a model with theta 1e7 that 409600 tokens stretch from 262144.
TEST(ContextStretch, FrequenciesAreThoseOfTransformers) {
  ModelFolder folder = trained_model({{}}, {{.theta = 1e7}});
  folder.config.max_position_embeddings = 262144;
  stretch_context(folder, 409600);
  const RopeValues values = rope_values(folder.config.rope_tables.at(0), 64, 64, 409600);
  const std::vector<double> expected = {1.0, 0.6042963862, 0.3651741445, 0.2206733972};
  for (size_t j = 0; j < expected.size(); ++j) {
    EXPECT_NEAR(values.inverse_frequencies[j], expected[j], 1e-7) << j;
  }
  EXPECT_NEAR(values.amplitudes[0], 1.044628710262842, 1e-12);
  // Of a wave that turns less than once in training, the whole factor.
  EXPECT_NEAR(values.inverse_frequencies[31], std::pow(1e7, -31.0 / 32.0) / 1.5625, 1e-15);
}

// Gemma 3: two tables; Qwen 2: one for both kinds of layers.
TEST(ContextStretch, LayersThatSeeAWindowKeepTheirTable) {
  const RopeTable local = {.theta = 1e4};
  const RopeTable global = {.theta = 1e6};
  const RopeTable longer = {.theta = 1e6, .scaling = yarn(2.0, 4096, 0.1 * std::log(2.0) + 1.0)};
  const ModelConfig two =
      stretched(trained_model({{.sliding_window = 512, .rope_table = 0}, {.rope_table = 1}},
                              {local, global}),
                8192)
          .config;
  EXPECT_THAT(two.rope_tables, ElementsAre(local, longer));
  EXPECT_EQ(two.block.layers[0], (LayerSpec{.sliding_window = 512, .rope_table = 0}));
  EXPECT_EQ(two.block.layers[1], (LayerSpec{.sliding_window = 0, .rope_table = 1}));

  const ModelConfig one =
      stretched(trained_model({{}, {.sliding_window = 512}, {}}, {global}), 8192).config;
  EXPECT_THAT(one.rope_tables, ElementsAre(longer, global));
  EXPECT_THAT(
      one.block.layers,
      ElementsAre(LayerSpec{}, LayerSpec{.sliding_window = 512, .rope_table = 1}, LayerSpec{}));
}

TEST(ContextStretch, AWindowLongerThanTrainingIsNone) {
  const auto tables_for = [](int64_t window) {
    return stretched(trained_model({{.sliding_window = window}}, {{}}), 8192).config.rope_tables;
  };
  EXPECT_EQ(tables_for(4096).at(0).scaling.kind, RopeScaling::Kind::kNone);
  EXPECT_EQ(tables_for(4097).at(0).scaling.kind, RopeScaling::Kind::kYarn);
}

// Layers without RoPE, and those that see windows, even if these could not be stretched.
TEST(ContextStretch, ModelsWithNothingToStretchOnlyGetTheContext) {
  const RopeTable linear = {.scaling = {.kind = RopeScaling::Kind::kLinear, .factor = 8.0}};
  const ModelFolder folder = stretched(
      trained_model({{.sliding_window = 512}, {.rope_table = std::nullopt}}, {linear}), 8192);
  EXPECT_THAT(folder.config.rope_tables, ElementsAre(linear));
  EXPECT_FALSE(folder.config.block.layers[1].rope_table);
  EXPECT_EQ(folder.config.max_position_embeddings, 8192);
  ASSERT_TRUE(folder.config.stretch);
  EXPECT_EQ(folder.config.stretch->factor, 1.0);
  EXPECT_THAT(folder.warnings, ElementsAre(AllOf(HasSubstr("8192"), HasSubstr("beyond the 4096"),
                                                 HasSubstr("needs no stretching"))));
}

TEST(ContextStretch, YarnGrowsFromItsOwnOriginalLength) {
  RopeScaling scaling = yarn(4.0, 1024, 0.1 * std::log(4.0) + 1.0);
  scaling.beta_fast = 16.0;
  scaling.truncate = false;
  RopeScaling longer = scaling;
  longer.factor = 12000.0 / 1024.0;
  longer.attention_factor = 0.1 * std::log(longer.factor) + 1.0;
  EXPECT_EQ(stretched(llama_with(scaling), 12000).config.rope_tables.at(0).scaling, longer);
  // As config.json may round it.
  scaling.attention_factor = 1.1386294;
  EXPECT_EQ(stretched(llama_with(scaling), 12000).config.rope_tables.at(0).scaling, longer);
  // Ministral 3 does without.
  scaling.attention_factor = 1.0;
  longer.attention_factor = 1.0;
  EXPECT_EQ(stretched(llama_with(scaling), 12000).config.rope_tables.at(0).scaling, longer);
}

// Qwen 2.5 with the scaling that its authors propose.
TEST(ContextStretch, YarnThatReachesSoFarStays) {
  const RopeScaling scaling = yarn(4.0, 4096, 1.2);
  const ModelFolder folder = stretched(llama_with(scaling), 16384);
  EXPECT_EQ(folder.config.rope_tables.at(0).scaling, scaling);
  EXPECT_EQ(folder.config.max_position_embeddings, 16384);
  EXPECT_EQ(folder.config.stretch->factor, 1.0);
  EXPECT_THAT(thrown_error([&] { stretched(llama_with(scaling), 16385); }).message,
              HasSubstr("its attention factor 1.2 was chosen for yarn by 4 alone"));
}

// Vicuna 16k: positions are divided by four, and config.json says 4096.
TEST(ContextStretch, LinearScalingMayReachFurtherThanItsNumberOfPositions) {
  const RopeScaling scaling = {.kind = RopeScaling::Kind::kLinear, .factor = 4.0};
  const ModelFolder folder = stretched(llama_with(scaling), 16384);
  EXPECT_EQ(folder.config.rope_tables.at(0).scaling, scaling);
  EXPECT_EQ(folder.config.max_position_embeddings, 16384);
  EXPECT_THAT(thrown_error([&] { stretched(llama_with(scaling), 16385); }).message,
              HasSubstr("it is scaled already, linear by 4"));
}

TEST(ContextStretch, OtherScalingsAreRefusedByName) {
  for (const auto& [kind, name] : {std::pair{RopeScaling::Kind::kDynamic, "dynamic"},
                                   {RopeScaling::Kind::kLongRope, "longrope"},
                                   {RopeScaling::Kind::kLlama3, "llama3"},
                                   {RopeScaling::Kind::kProportional, "proportional"}}) {
    ModelFolder folder = llama_with({.kind = kind, .factor = 8.0});
    EXPECT_EQ(thrown_error([&] { stretch_context(folder, 5000); }).message,
              concat("some/model: a context of 5000 tokens is beyond the 4096 of this model, whose "
                     "RoPE cannot be stretched: it is scaled already, ",
                     name, " by 8"));
    EXPECT_EQ(folder.config.max_position_embeddings, 4096);
    EXPECT_EQ(folder.config.rope_tables.size(), 1u);
    EXPECT_THAT(folder.warnings, IsEmpty());
  }
}

TEST(ContextStretch, ThetaMustHaveALogarithm) {
  ModelFolder folder = trained_model({{}}, {{.theta = 1.0}});
  EXPECT_THAT(thrown_error([&] { stretch_context(folder, 5000); }).message,
              HasSubstr("its rope_theta is 1"));
}

}  // namespace
}  // namespace tessera
