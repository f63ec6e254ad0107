// Keys of config.json that alter how the models of a family compute.
#pragma once

#include <string_view>

#include "model_loaders/json.h"
#include "model_loaders/model_config.h"

namespace tessera {

// A key and the function that reads it: it changes what the family's row says, or throws Error when
// the value is none that is supported. An absent key leaves the row's value; so does null, unless
// it is said below to mean something else.
struct FamilyKey {
  std::string_view key;
  void (*read)(const JsonObject& json, std::string_view key, ModelConfig& config);
};

// Switches and numbers of which one value is supported.
void refuse_true(const JsonObject& json, std::string_view key, ModelConfig& config);
void require_true(const JsonObject& json, std::string_view key, ModelConfig& config);
void require_one(const JsonObject& json, std::string_view key, ModelConfig& config);
void refuse_number(const JsonObject& json, std::string_view key, ModelConfig& config);

// Keys that the family's class does not read, whatever their value.
void ignore_bool(const JsonObject& json, std::string_view key, ModelConfig& config);
void ignore_integer(const JsonObject& json, std::string_view key, ModelConfig& config);
void ignore_string(const JsonObject& json, std::string_view key, ModelConfig& config);

// BlockSpec::activation.
void read_activation(const JsonObject& json, std::string_view key, ModelConfig& config);

// BlockSpec::biases: of queries, keys and values; of these and the attention's output; of the
// output alone; of the three products of the feed-forward network.
void read_qkv_bias(const JsonObject& json, std::string_view key, ModelConfig& config);
void read_attention_bias(const JsonObject& json, std::string_view key, ModelConfig& config);
void read_output_bias(const JsonObject& json, std::string_view key, ModelConfig& config);
void read_mlp_bias(const JsonObject& json, std::string_view key, ModelConfig& config);

// BlockSpec::attention_scale: the scale itself; the number whose inverse root it is.
void read_attention_scale(const JsonObject& json, std::string_view key, ModelConfig& config);
void read_query_pre_attn_scalar(const JsonObject& json, std::string_view key, ModelConfig& config);

// Soft caps; null: none.
void read_attention_softcap(const JsonObject& json, std::string_view key, ModelConfig& config);
void read_logit_softcap(const JsonObject& json, std::string_view key, ModelConfig& config);

// Multipliers; logits are multiplied by a multiplier or divided by a scaling.
void read_embedding_multiplier(const JsonObject& json, std::string_view key, ModelConfig& config);
void read_residual_multiplier(const JsonObject& json, std::string_view key, ModelConfig& config);
void read_logit_multiplier(const JsonObject& json, std::string_view key, ModelConfig& config);
void read_logits_scaling(const JsonObject& json, std::string_view key, ModelConfig& config);

}  // namespace tessera
