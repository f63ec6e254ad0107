#include "model_loaders/context_stretch.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernels/tensor/check.h"
#include "model_loaders/layer_config.h"

namespace tessera {
namespace {

// From which context to which, in tokens.
struct LongerContext {
  const std::string& path;  // of the model's folder, for errors
  int64_t trained = 0;
  int64_t wanted = 0;
};

[[noreturn]] void refuse_stretch(const LongerContext& context, const std::string& reason) {
  throw Error(
      concat(context.path, ": a context of ", counted(context.wanted, "token"), " is beyond the ",
             context.trained, " of this model, whose RoPE cannot be stretched: ", reason),
      "a shorter context, or a model that has a longer one");
}

double stretch_factor(int64_t original, const LongerContext& context) {
  return static_cast<double>(context.wanted) / static_cast<double>(original);
}

RopeScaling new_yarn(const RopeTable& table, const LongerContext& context) {
  if (table.theta <= 1.0) refuse_stretch(context, concat("its rope_theta is ", table.theta));
  const double factor = stretch_factor(context.trained, context);
  return {.kind = RopeScaling::Kind::kYarn,
          .factor = factor,
          .original_max_position_embeddings = context.trained,
          .attention_factor = yarn_attention_factor(factor)};
}

// config.json may give an attention factor in decimals.
bool is_nearly(double value, double expected) { return std::abs(value - expected) < 1e-6; }

RopeScaling longer_yarn(RopeScaling scaling, const LongerContext& context) {
  const double factor = stretch_factor(scaling.original_max_position_embeddings, context);
  if (factor <= scaling.factor) return scaling;
  if (is_nearly(scaling.attention_factor, yarn_attention_factor(scaling.factor))) {
    scaling.attention_factor = yarn_attention_factor(factor);
  } else if (scaling.attention_factor != 1.0) {
    refuse_stretch(context, concat("its attention factor ", scaling.attention_factor,
                                   " was chosen for yarn by ", scaling.factor, " alone"));
  }
  scaling.factor = factor;
  return scaling;
}

RopeScaling longer_scaling(const RopeTable& table, const LongerContext& context) {
  const RopeScaling& scaling = table.scaling;
  if (scaling.kind == RopeScaling::Kind::kNone) return new_yarn(table, context);
  if (scaling.kind == RopeScaling::Kind::kYarn) return longer_yarn(scaling, context);
  // Some files give the context after linear scaling and some, like Vicuna's, the one before it.
  if (scaling.kind == RopeScaling::Kind::kLinear &&
      stretch_factor(context.trained, context) <= scaling.factor) {
    return scaling;
  }
  refuse_stretch(context, concat("it is scaled already, ", rope_scaling_name(scaling.kind), " by ",
                                 scaling.factor));
}

// A layer with a window that was filled in training meets no distance that is new to it.
bool sees_further(const LayerSpec& layer, int64_t trained_context) {
  return layer.sliding_window == 0 || layer.sliding_window > trained_context;
}

// Replaces the tables of `config`.
void stretch_tables(const LongerContext& context, ModelConfig& config, ContextStretch& stretch) {
  const std::vector<RopeTable> trained_tables = std::exchange(config.rope_tables, {});
  for (LayerSpec& layer : config.block.layers) {
    if (!layer.rope_table) continue;
    RopeTable table = trained_tables.at(static_cast<size_t>(*layer.rope_table));
    if (sees_further(layer, context.trained)) {
      const RopeScaling longer = longer_scaling(table, context);
      if (longer != table.scaling) stretch.factor = std::max(stretch.factor, longer.factor);
      table.scaling = longer;
    }
    layer.rope_table = rope_table_index(table, config);
  }
}

std::string warning_text(const ContextStretch& stretch, int64_t context_size) {
  return concat("a context of ", counted(context_size, "token"), " is beyond the ",
                stretch.trained_context, " that the model was trained for: ",
                stretch.factor > 1.0 ? concat("RoPE is stretched by YaRN, factor ", stretch.factor)
                                     : std::string("its RoPE needs no stretching"));
}

}  // namespace

void stretch_context(ModelFolder& folder, int64_t context_size) {
  const int64_t trained = folder.config.max_position_embeddings;
  if (context_size <= trained) return;
  ModelConfig config = folder.config;
  ContextStretch stretch = {.trained_context = trained};
  stretch_tables({folder.path, trained, context_size}, config, stretch);
  config.max_position_embeddings = context_size;
  config.stretch = stretch;
  folder.config = std::move(config);
  folder.warnings.push_back(warning_text(stretch, context_size));
}

bool can_stretch_context(ModelFolder folder) {
  try {
    stretch_context(folder, folder.config.max_position_embeddings + 1);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tessera
