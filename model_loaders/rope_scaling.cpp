#include "model_loaders/rope_scaling.h"

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"
#include "model_loaders/rope_config.h"

namespace tessera {
namespace {

constexpr double kMaxFactor = 1e6;

constexpr std::pair<std::string_view, RopeScaling::Kind> kKinds[] = {
    {"default", RopeScaling::Kind::kNone},
    {"linear", RopeScaling::Kind::kLinear},
    {"dynamic", RopeScaling::Kind::kDynamic},
    {"yarn", RopeScaling::Kind::kYarn},
    {"longrope", RopeScaling::Kind::kLongRope},
    {"su", RopeScaling::Kind::kLongRope},  // its first name, in Phi-3
    {"llama3", RopeScaling::Kind::kLlama3},
    {"proportional", RopeScaling::Kind::kProportional},
};

RopeScaling::Kind named_kind(const JsonObject& rope, std::string_view key,
                             const std::string& name) {
  // The first files of Phi-3 call it so.
  if (name == "yarn" && rope.contains("short_factor")) return RopeScaling::Kind::kLongRope;
  std::string known;
  for (const auto& [known_name, kind] : kKinds) {
    if (name == known_name) return kind;
    known += concat(" ", known_name);
  }
  throw Error(concat(rope.path(), ": ", rope.field(key), " '", printable(name),
                     "' is not supported; supported:", known));
}

RopeScaling::Kind read_kind(const JsonObject& rope) {
  // "type" is the older name; some files have both.
  const std::optional<std::string> rope_type = rope.find_string("rope_type");
  const std::optional<std::string> type = rope.find_string("type");
  if (!rope_type && !type) return RopeScaling::Kind::kNone;
  const RopeScaling::Kind kind =
      rope_type ? named_kind(rope, "rope_type", *rope_type) : named_kind(rope, "type", *type);
  CHECK(!rope_type || !type || kind == named_kind(rope, "type", *type), rope.path(), ": ",
        rope.field("rope_type"), " is '", printable(*rope_type), "' but ", rope.field("type"),
        " is '", printable(*type), "'");
  return kind;
}

// The length of the pre-training context, if it is given: beside the parameters or among them.
std::optional<int64_t> find_original_context(const JsonObject& rope,
                                             const RopeScalingContext& context) {
  constexpr std::string_view kKey = "original_max_position_embeddings";
  const auto outer = context.config.find_integer(kKey, 1, kMaxContextTokens);
  const auto inner = rope.find_integer(kKey, 1, kMaxContextTokens);
  CHECK(!outer || !inner || *outer == *inner, context.config.path(), ": ", kKey, " is ", *outer,
        " but ", rope.field(kKey), " is ", *inner);
  if (outer) return outer;
  // A class with such a field, Phi-3's, has its default at hand before the parameters are read.
  if (context.default_original_context > 0) return context.default_original_context;
  return inner;
}

int64_t original_context_or_longest(const JsonObject& rope, const RopeScalingContext& context) {
  return find_original_context(rope, context).value_or(context.max_position_embeddings);
}

void read_llama3(const JsonObject& rope, const RopeScalingContext& context, RopeScaling& scaling) {
  scaling.low_freq_factor = rope.get_number("low_freq_factor", 1e-3, kMaxFactor);
  scaling.high_freq_factor = rope.get_number("high_freq_factor", 1e-3, kMaxFactor);
  CHECK(scaling.low_freq_factor < scaling.high_freq_factor, rope.path(), ": ",
        rope.field("low_freq_factor"), " must be less than high_freq_factor, got ",
        scaling.low_freq_factor, " and ", scaling.high_freq_factor);
  const auto original = find_original_context(rope, context);
  scaling.original_max_position_embeddings =
      original ? *original
               : rope.get_integer("original_max_position_embeddings", 1, kMaxContextTokens);
}

double stretch_of(const RopeScalingContext& context, int64_t original) {
  return static_cast<double>(context.max_position_embeddings) / static_cast<double>(original);
}

void read_yarn(const JsonObject& rope, const RopeScalingContext& context, RopeScaling& scaling) {
  const int64_t original = original_context_or_longest(rope, context);
  scaling.original_max_position_embeddings = original;
  scaling.factor =
      rope.find_number("factor", 1e-3, kMaxFactor).value_or(stretch_of(context, original));
  // 0 means the default, as null does.
  const auto beta = [&](std::string_view key, double otherwise) {
    const double value = rope.find_number(key, 0.0, kMaxFactor).value_or(0.0);
    return value == 0.0 ? otherwise : value;
  };
  scaling.beta_fast = beta("beta_fast", 32.0);
  scaling.beta_slow = beta("beta_slow", 1.0);
  const bool truncate = rope.find_bool("truncate").value_or(true);
  scaling.truncate = truncate || context.ignores_truncate;
  rope.find_bool("finetuned");  // in the first files; alters nothing that is computed
  const double scale = rope.find_number("mscale", 0.0, kMaxFactor).value_or(0.0);
  const double scale_all = rope.find_number("mscale_all_dim", 0.0, kMaxFactor).value_or(0.0);
  const double attention_factor = scale > 0.0 && scale_all > 0.0
                                      ? yarn_attention_factor(scaling.factor, scale) /
                                            yarn_attention_factor(scaling.factor, scale_all)
                                      : yarn_attention_factor(scaling.factor);
  // vLLM's number, which multiplies the default: DeepSeek-R1-0528-Qwen3-8B has the inverse of it,
  // for no factor at all. transformers warns that it does not know the key and goes on without.
  const double multiplier = rope.find_number("attn_factor", 1e-3, kMaxFactor).value_or(1.0);
  scaling.attention_factor = rope.find_number("attention_factor", 1e-3, kMaxFactor)
                                 .value_or(attention_factor * multiplier);
}

std::vector<double> read_factors(const JsonObject& rope, std::string_view key, int64_t rotary_dim) {
  std::vector<double> factors = rope.get_numbers(key, 1e-3, kMaxFactor);
  CHECK(static_cast<int64_t>(factors.size()) == rotary_dim / 2, rope.path(), ": ", rope.field(key),
        " has ", counted(factors.size(), "number"), ", expected ", rotary_dim / 2,
        ", one for each pair of elements that turns");
  return factors;
}

void read_longrope(const JsonObject& rope, const RopeScalingContext& context,
                   RopeScaling& scaling) {
  const int64_t original = original_context_or_longest(rope, context);
  CHECK(original > 1, rope.path(), ": original_max_position_embeddings must be more than 1");
  scaling.original_max_position_embeddings = original;
  scaling.short_factors = read_factors(rope, "short_factor", context.rotary_dim);
  scaling.long_factors = read_factors(rope, "long_factor", context.rotary_dim);
  scaling.factor =
      rope.find_number("factor", 1e-3, kMaxFactor).value_or(stretch_of(context, original));
  const double attention_factor =
      scaling.factor <= 1.0
          ? 1.0
          : std::sqrt(1.0 + std::log(scaling.factor) / std::log(static_cast<double>(original)));
  scaling.attention_factor =
      rope.find_number("attention_factor", 1e-3, kMaxFactor).value_or(attention_factor);
}

void read_parameters(const JsonObject& rope, const RopeScalingContext& context,
                     RopeScaling& scaling) {
  const auto read_factor = [&] { scaling.factor = rope.get_number("factor", 1.0, kMaxFactor); };
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      return;
    case RopeScaling::Kind::kLinear:
      return read_factor();
    case RopeScaling::Kind::kDynamic:
      scaling.original_max_position_embeddings = context.max_position_embeddings;
      return read_factor();
    case RopeScaling::Kind::kYarn:
      return read_yarn(rope, context, scaling);
    case RopeScaling::Kind::kLongRope:
      return read_longrope(rope, context, scaling);
    case RopeScaling::Kind::kLlama3:
      read_factor();
      return read_llama3(rope, context, scaling);
    case RopeScaling::Kind::kProportional:
      scaling.factor = rope.find_number("factor", 1.0, kMaxFactor).value_or(1.0);
      scaling.rotated_fraction = rope.find_number("partial_rotary_factor", 0.0, 1.0).value_or(1.0);
      return;
  }
}

}  // namespace

RopeScaling read_rope_scaling(const JsonObject& rope, const RopeScalingContext& context) {
  RopeScaling scaling;
  scaling.kind = read_kind(rope);
  read_parameters(rope, context, scaling);
  const std::vector<std::string> unread = rope.unread_fields();
  CHECK(unread.empty(), rope.path(), ": ", unread.front(), " is not understood");
  return scaling;
}

bool is_proportional_rope(const JsonObject& rope) {
  return read_kind(rope) == RopeScaling::Kind::kProportional;
}

}  // namespace tessera
