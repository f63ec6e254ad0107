#include "kernels/block_fields.h"

#include <gtest/gtest.h>

#include "tests/kernels/altered_block.h"

namespace tessera {
namespace {

TEST(BlockFields, TellsEveryFieldByName) {
  EXPECT_EQ(first_difference(block_of(3), block_of(3)), "");
  for_each_block_field([](std::string_view name, auto... members) {
    BlockSpec altered = block_of(3);
    alter(field_of(altered, members...));
    EXPECT_NE(altered, block_of(3)) << name;
    EXPECT_EQ(first_difference(altered, block_of(3)), name);
    EXPECT_EQ(first_difference(block_of(3), altered), name);
  });
}

TEST(BlockFields, TellsEveryFieldOfALayer) {
  for_each_layer_field([](std::string_view name, auto member) {
    BlockSpec altered = block_of(3);
    alter(altered.layers[1].*member);
    EXPECT_NE(altered, block_of(3)) << name;
    EXPECT_EQ(first_difference(altered, block_of(3)), concat("layers[1].", name));
  });
}

TEST(BlockFields, NamesTheFirstDifference) {
  BlockSpec altered = block_of(3);
  altered.biases.down = true;
  altered.activation = Activation::kGeluTanh;
  EXPECT_EQ(first_difference(altered, block_of(3)), "biases.down");
}

// Where the fields of `spec` begin that are visited.
std::vector<const void*> visited_in(const BlockSpec& spec) {
  std::vector<const void*> fields;
  for_each_block_field(
      [&](std::string_view, auto... members) { fields.push_back(&field_of(spec, members...)); });
  return fields;
}

std::vector<const void*> visited_in(const LayerSpec& spec) {
  std::vector<const void*> fields;
  for_each_layer_field([&](std::string_view, auto member) { fields.push_back(&(spec.*member)); });
  return fields;
}

// A structured binding names every member, or does not compile: when a field was added, add it to
// block_fields.h and below.
TEST(BlockFields, VisitsEveryMember) {
  const BiasSpec biases;
  [[maybe_unused]] const auto& [qkv, output, gate_up, down] = biases;
  const LayerSpec layer;
  const auto& [sliding_window, rope_table] = layer;
  EXPECT_EQ(visited_in(layer), (std::vector<const void*>{&sliding_window, &rope_table}));

  const BlockSpec spec;
  const auto& [norm, norm_placement, is_parallel, qk_norm, block_biases, activation,
               attention_scale, attention_softcap, query_scaling, has_attention_sinks,
               embedding_multiplier, residual_multiplier, logit_softcap, experts, layers] = spec;
  EXPECT_EQ(visited_in(spec),
            (std::vector<const void*>{
                &norm, &norm_placement, &is_parallel, &qk_norm, &block_biases.qkv,
                &block_biases.output, &block_biases.gate_up, &block_biases.down, &activation,
                &attention_scale, &attention_softcap, &query_scaling, &has_attention_sinks,
                &embedding_multiplier, &residual_multiplier, &logit_softcap, &experts, &layers}));
}

}  // namespace
}  // namespace tessera
