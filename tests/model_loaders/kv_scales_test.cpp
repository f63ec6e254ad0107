#include "model_loaders/kv_scales.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "model_loaders/weight_inventory.h"
#include "tests/model_loaders/model_files.h"
#include "tests/model_loaders/safetensors_builder.h"
#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ModelConfig two_kv_heads() {
  ModelConfig config = tiny_config();
  config.num_kv_heads = 2;
  return config;
}

std::string floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

std::vector<float> scales_of(const SafetensorsBuilder& builder) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", builder.file());
  return read_kv_scales(Checkpoint::open(folder.path()), two_kv_heads());
}

const std::string kLayer0 = "model.layers.0.self_attn.";
const std::string kLayer1 = "model.layers.1.self_attn.";

TEST(KvScales, AreOfWholeTensorsOrOfHeads) {
  SafetensorsBuilder builder;
  builder.add(kLayer0 + "k_scale", "F32", "[1]", floats({0.5f}))
      .add(kLayer0 + "v_scale", "F32", "[]", floats({0.25f}))
      .add(kLayer1 + "k_proj.k_scale", "F32", "[2]", floats({2.0f, 3.0f}))
      .add(kLayer1 + "v_proj.v_scale", "BF16", "[1]", std::string("\x80\x3f", 2));
  EXPECT_THAT(scales_of(builder), ElementsAre(0.5f, 0.5f, 0.25f, 0.25f, 2.0f, 3.0f, 1.0f, 1.0f));
}

TEST(KvScales, MayBeAbsent) {
  SafetensorsBuilder builder;
  builder.add("other", "F32", "[1]", floats({1.0f}));
  EXPECT_THAT(scales_of(builder), IsEmpty());
}

TEST(KvScales, AreThereForAllLayersOrNone) {
  SafetensorsBuilder builder;
  builder.add(kLayer0 + "k_scale", "F32", "[1]", floats({0.5f}))
      .add(kLayer0 + "v_scale", "F32", "[1]", floats({0.5f}))
      .add(kLayer1 + "k_scale", "F32", "[1]", floats({0.5f}));
  EXPECT_THAT(thrown_error([&] { scales_of(builder); }).message,
              HasSubstr("tensor 'model.layers.1.self_attn.v_scale' is missing"));
}

TEST(KvScales, ArePositiveNumbers) {
  for (const float scale : {0.0f, -1.0f, INFINITY, NAN}) {
    SafetensorsBuilder builder;
    builder.add(kLayer0 + "k_scale", "F32", "[1]", floats({scale}));
    EXPECT_THAT(thrown_error([&] { scales_of(builder); }).message, HasSubstr("has a scale of"));
  }
}

TEST(KvScales, OfOtherShapesAreRefused) {
  SafetensorsBuilder three;
  three.add(kLayer0 + "v_scale", "F32", "[3]", floats({1.0f, 1.0f, 1.0f}));
  EXPECT_THAT(thrown_error([&] { scales_of(three); }).message,
              HasSubstr("has shape [3], expected one scale or one for each of 2 KV heads"));
}

TEST(KvScales, AreNoUnknownWeights) {
  const ModelConfig config = tiny_config();
  const auto all = [](const std::string&) { return true; };
  const TemporaryFolder folder;
  folder.write("model.safetensors", tiny_weights(config, all,
                                                 {kLayer0 + "k_scale", kLayer1 + "v_proj.v_scale",
                                                  "model.layers.2.self_attn.k_scale"}));
  EXPECT_THAT(unknown_weights(Checkpoint::open(folder.path()), config),
              ElementsAre("model.layers.2.self_attn.k_scale"));
}

}  // namespace
}  // namespace tessera
