#include "apps/options/sampling_options.h"

#include <algorithm>
#include <array>
#include <random>

#include "apps/options/number_option.h"
#include "apps/process/exit_codes.h"
#include "engine/engine.h"

namespace tessera {
namespace {

constexpr std::array kFields = {
    SamplingField{"temperature", "temp", "--temp,--temperature",
                  "0: always the likeliest token; above: more variety (the model's, else 0)",
                  &SamplingOptions::temperature, kTemperatureLimits},
    SamplingField{"top_k", "", "--top-k",
                  "draw from the K likeliest tokens; 0 or -1: off (the model's)",
                  &SamplingOptions::top_k, kTopKLimits},
    SamplingField{"top_p", "", "--top-p",
                  "draw from the likeliest tokens that make up P; 1: off (the model's)",
                  &SamplingOptions::top_p, kTopPLimits},
    SamplingField{"min_p", "", "--min-p",
                  "drop tokens below P times the likeliest; 0: off (the model's)",
                  &SamplingOptions::min_p, kMinPLimits},
    SamplingField{"repetition_penalty", "repeat_penalty", "--repeat-penalty,--repetition-penalty",
                  "above 1: repeat less, the prompt too; 1: off (the model's)",
                  &SamplingOptions::repetition_penalty, kRepetitionPenaltyLimits},
    SamplingField{"presence_penalty", "", "--presence-penalty",
                  "taken from tokens that the answer has, -2..2 (0)",
                  &SamplingOptions::presence_penalty, kOccurrencePenaltyLimits},
    SamplingField{"frequency_penalty", "", "--frequency-penalty",
                  "taken from tokens for each time that the answer has them, -2..2 (0)",
                  &SamplingOptions::frequency_penalty, kOccurrencePenaltyLimits},
    SamplingField{"repeat_last_n", "", "--repeat-last-n",
                  "tokens the penalties look back; 0: all (0)", &SamplingOptions::penalty_window,
                  kPenaltyWindowLimits, Suffix::kKibi},
    SamplingField{"seed", "", "-s,--seed",
                  "same seed, same answer; -1: a random one (random; the statistics tell it)",
                  &SamplingOptions::seed, kSeedLimits, Suffix::kNone,
                  /*minus_one_is_unset=*/true},
    SamplingField{"max_tokens", "max_completion_tokens", "-n,--max-tokens,--n-predict",
                  "longest answer in tokens; 0: until it ends or the context is full",
                  &SamplingOptions::max_tokens, kMaxTokensLimits, Suffix::kKibi},
    SamplingField{"min_tokens", "", "--min-tokens",
                  "tokens before which the answer does not end by itself (0)",
                  &SamplingOptions::min_tokens, kMaxTokensLimits, Suffix::kKibi},
};

bool same_name(std::string_view left, std::string_view right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](char a, char b) { return (a == '-' ? '_' : a) == (b == '-' ? '_' : b); });
}

template <typename T>
void override_with(T& value, const std::optional<T>& option) {
  if (option) value = *option;
}

}  // namespace

uint64_t random_seed() { return std::random_device{}(); }

std::span<const SamplingField> sampling_fields() { return kFields; }

const SamplingField* find_sampling_field(std::string_view name) {
  for (const SamplingField& field : kFields) {
    if (same_name(field.name, name) || (!field.alias.empty() && same_name(field.alias, name))) {
      return &field;
    }
  }
  return nullptr;
}

void set_sampling_field(SamplingOptions& options, const SamplingField& field,
                        const std::string& name, const std::string& text) {
  const auto set_member = [&](auto member) {
    if (field.minus_one_is_unset && text == "-1") {
      (options.*member).reset();
      return;
    }
    const auto& limits = limits_of(field, member);
    const auto value = find_number(text, limits, field.suffix);
    if (!value) {
      throw UsageError(
          refusal(name, concat(field.minus_one_is_unset ? "-1 or " : "", limits.text()), text));
    }
    options.*member = *value;
  };
  std::visit(set_member, field.member);
}

SamplingParams resolve_sampling(const SamplingOptions& options, const SamplingParams& defaults) {
  SamplingParams params = defaults;
  override_with(params.temperature, options.temperature);
  override_with(params.top_k, options.top_k);
  override_with(params.top_p, options.top_p);
  override_with(params.min_p, options.min_p);
  override_with(params.repetition_penalty, options.repetition_penalty);
  override_with(params.presence_penalty, options.presence_penalty);
  override_with(params.frequency_penalty, options.frequency_penalty);
  override_with(params.penalty_window, options.penalty_window);
  override_with(params.max_tokens, options.max_tokens);
  override_with(params.min_tokens, options.min_tokens);
  override_with(params.stop, options.stop);
  override_with(params.ignore_eos, options.ignore_eos);
  if (options.seed) {
    params.seed = *options.seed;
  } else if (params.temperature != 0.0) {
    params.seed = random_seed();
  }
  validate(params);
  return params;
}

SamplingOptions merged(const SamplingOptions& base, const SamplingOptions& over) {
  SamplingOptions result = base;
  for (const SamplingField& field : kFields) {
    std::visit(
        [&](auto member) {
          if (over.*member) result.*member = over.*member;
        },
        field.member);
  }
  if (over.stop) result.stop = over.stop;
  if (over.ignore_eos) result.ignore_eos = over.ignore_eos;
  return result;
}

}  // namespace tessera
