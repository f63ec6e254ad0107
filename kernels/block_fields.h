// The fields of a BlockSpec by name, for whoever must treat each of them: code that computes some
// blocks and declines the others, and tests that alter one field after the other.
//
// A field that is added to BlockSpec or LayerSpec is added here too; block_fields_test does not
// compile until it is.
#pragma once

#include <string>
#include <string_view>

#include "kernels/block_spec.h"
#include "kernels/tensor/check.h"

namespace tessera {

// The field of `spec` to which a chain of pointers to members leads: (spec.*first).*second.
template <typename Spec, typename... Members>
auto& field_of(Spec& spec, Members... members) {
  return (spec.*....*members);
}

// Calls visit(name, pointers to members...) for every field; field_of leads there.
template <typename Visit>
void for_each_block_field(const Visit& visit) {
  visit("norm", &BlockSpec::norm);
  visit("norm_placement", &BlockSpec::norm_placement);
  visit("is_parallel", &BlockSpec::is_parallel);
  visit("qk_norm", &BlockSpec::qk_norm);
  visit("biases.qkv", &BlockSpec::biases, &BiasSpec::qkv);
  visit("biases.output", &BlockSpec::biases, &BiasSpec::output);
  visit("biases.gate_up", &BlockSpec::biases, &BiasSpec::gate_up);
  visit("biases.down", &BlockSpec::biases, &BiasSpec::down);
  visit("activation", &BlockSpec::activation);
  visit("attention_scale", &BlockSpec::attention_scale);
  visit("attention_softcap", &BlockSpec::attention_softcap);
  visit("query_scaling", &BlockSpec::query_scaling);
  visit("has_attention_sinks", &BlockSpec::has_attention_sinks);
  visit("embedding_multiplier", &BlockSpec::embedding_multiplier);
  visit("residual_multiplier", &BlockSpec::residual_multiplier);
  visit("logit_softcap", &BlockSpec::logit_softcap);
  visit("experts", &BlockSpec::experts);
  visit("layers", &BlockSpec::layers);
}

// The same for what may differ from layer to layer.
template <typename Visit>
void for_each_layer_field(const Visit& visit) {
  visit("sliding_window", &LayerSpec::sliding_window);
  visit("rope_table", &LayerSpec::rope_table);
}

// The first field in which a model's block differs from the block that some code computes, such as
// "biases.qkv" or "layers[3].sliding_window"; empty when they are equal. That code builds
// `computed` from the defaults and copies from `spec` only the fields that it reads. So every other
// field must have its default, and a field that is added later is declined until the code reads it.
inline std::string first_difference(const BlockSpec& spec, const BlockSpec& computed) {
  std::string difference;
  const auto compare = [&](const auto& left, const auto& right, const auto& name) {
    if (difference.empty() && left != right) difference = name();
  };
  if (spec.layers.size() == computed.layers.size()) {
    for (size_t i = 0; i < spec.layers.size(); ++i) {
      for_each_layer_field([&](std::string_view field, auto member) {
        compare(spec.layers[i].*member, computed.layers[i].*member,
                [&] { return concat("layers[", i, "].", field); });
      });
    }
  }
  for_each_block_field([&](std::string_view field, auto... members) {
    compare(field_of(spec, members...), field_of(computed, members...),
            [&] { return std::string(field); });
  });
  return difference;
}

}  // namespace tessera
