#include "engine/model_words.h"

#include <algorithm>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// 131072 -> "131,072"
std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = static_cast<int64_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), ",");
  }
  return digits;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += concat(text.empty() ? "" : ", ", part);
  return text;
}

std::string norm_words(const ModelConfig& config) {
  const std::string norm = config.block.norm == NormKind::kRmsNorm ? "RMSNorm" : "LayerNorm";
  const std::string offset = config.norm_offset != 0.0 ? " with 1 + weight" : "";
  if (config.block.is_parallel) return norm + offset + " before both halves at once";
  switch (config.block.norm_placement) {
    case NormPlacement::kPre:
      return norm + offset + " before both halves";
    case NormPlacement::kPost:
      return norm + offset + " after both halves";
    case NormPlacement::kPreAndPost:
      return norm + offset + " before and after both halves";
  }
  return norm;
}

std::string bias_words(const BiasSpec& biases) {
  std::vector<std::string> of;
  if (biases.qkv) of.insert(of.end(), {"q", "k", "v"});
  if (biases.output) of.push_back("o");
  if (biases.gate_up) of.insert(of.end(), {"gate", "up"});
  if (biases.down) of.push_back("down");
  return of.empty() ? "" : "biases of " + joined(of);
}

std::string_view qk_norm_words(QkNorm norm) {
  switch (norm) {
    case QkNorm::kNone:
      return "";
    case QkNorm::kPerHead:
      return "norms of q and k per head";
    case QkNorm::kWholeProjection:
      return "norms of all q and all k";
    case QkNorm::kLayerNormPerHead:
      return "LayerNorm of q and k per head";
  }
  return "";
}

std::string block_words(const ModelConfig& config) {
  std::vector<std::string> parts = {norm_words(config)};
  const auto add = [&](std::string_view part) {
    if (!part.empty()) parts.emplace_back(part);
  };
  add(bias_words(config.block.biases));
  add(qk_norm_words(config.block.qk_norm));
  add(config.block.activation == Activation::kSilu ? "SiLU" : "GELU (tanh)");
  return joined(parts);
}

// "29 of 34 layers", "all layers"
std::string layers_words(int64_t count, const ModelConfig& config) {
  return count == config.num_layers ? "all layers"
                                    : concat(count, " of ", config.num_layers, " layers");
}

template <typename Predicate>
int64_t count_layers(const ModelConfig& config, const Predicate& predicate) {
  return std::ranges::count_if(config.block.layers, predicate);
}

std::string window_words(const ModelConfig& config) {
  std::vector<std::string> parts;
  std::vector<int64_t> known;
  for (const LayerSpec& layer : config.block.layers) {
    const int64_t window = layer.sliding_window;
    if (window == 0 || std::ranges::find(known, window) != known.end()) continue;
    known.push_back(window);
    const int64_t count = count_layers(
        config, [&](const LayerSpec& other) { return other.sliding_window == window; });
    parts.push_back(concat(layers_words(count, config), count == 1 ? " sees " : " see ",
                           grouped(window), " tokens"));
  }
  return joined(parts);
}

std::string scaling_words(const RopeScaling& scaling) {
  std::string text = concat("scaling ", rope_scaling_name(scaling.kind));
  if (scaling.kind == RopeScaling::Kind::kNone) return text;
  if (scaling.kind == RopeScaling::Kind::kLongRope) {
    text += concat(" beyond ", grouped(scaling.original_max_position_embeddings), " tokens");
  } else {
    text += concat(" by ", scaling.factor);
  }
  if (scaling.attention_factor != 1.0) text += concat(", amplitude ", scaling.attention_factor);
  return text;
}

std::vector<std::string> rope_words(const ModelConfig& config) {
  std::vector<std::string> lines;
  const auto on = [&](std::optional<int64_t> table) {
    const int64_t count =
        count_layers(config, [&](const LayerSpec& layer) { return layer.rope_table == table; });
    return count == config.num_layers ? "" : " on " + layers_words(count, config);
  };
  for (size_t i = 0; i < config.rope_tables.size(); ++i) {
    const RopeTable& table = config.rope_tables[i];
    std::string line = concat("theta ", table.theta, ", ", scaling_words(table.scaling));
    if (config.rotary.dim != 0) {
      line += concat(", ", config.rotary.dim, " of ", config.head_dim, " elements of a head");
    }
    lines.push_back(line + on(static_cast<int64_t>(i)));
  }
  const bool any_without =
      count_layers(config, [](const LayerSpec& layer) { return !layer.rope_table; }) > 0;
  if (any_without) lines.push_back("none" + on(std::nullopt));
  return lines;
}

std::vector<std::string> scalar_words(const ModelConfig& config) {
  const BlockSpec& block = config.block;
  std::vector<std::string> parts;
  if (block.attention_scale != 0.0) {
    parts.push_back(concat("scores times ", block.attention_scale));
  }
  if (block.attention_softcap != 0.0) {
    parts.push_back(concat("scores capped at ", block.attention_softcap));
  }
  if (block.query_scaling.beta != 0.0) {
    const QueryScalingSpec& scaling = block.query_scaling;
    parts.push_back(concat("queries grow beyond ",
                           grouped(scaling.original_max_position_embeddings), " tokens by beta ",
                           scaling.beta));
  }
  if (block.embedding_multiplier != 1.0) {
    parts.push_back(concat("embeddings times ", block.embedding_multiplier));
  }
  if (block.residual_multiplier != 1.0) {
    parts.push_back(concat("halves times ", block.residual_multiplier));
  }
  if (config.logit_multiplier != 1.0) {
    parts.push_back(concat("logits times ", config.logit_multiplier));
  }
  if (block.logit_softcap != 0.0) parts.push_back(concat("logits capped at ", block.logit_softcap));
  return parts;
}

}  // namespace

ModelWords describe_blocks(const ModelConfig& config) {
  return {.blocks = block_words(config),
          .windows = window_words(config),
          .rope = rope_words(config),
          .scalars = scalar_words(config)};
}

}  // namespace tessera
