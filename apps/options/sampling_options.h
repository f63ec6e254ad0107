// The sampling a person asks for, by flag, by /set or in a batch line: one table names them all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/model/sampling_params.h"

namespace tessera {

enum class Suffix : uint8_t;  // in number_option.h

// What was set; the model's own suggestion holds for the rest.
struct SamplingOptions {
  std::optional<double> temperature;
  std::optional<int64_t> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  std::optional<int64_t> penalty_window;
  std::optional<uint64_t> seed;
  std::optional<int64_t> max_tokens;
  std::optional<int64_t> min_tokens;
  std::optional<std::vector<std::string>> stop;
  std::optional<bool> ignore_eos;
};

struct SamplingField {
  using Member = std::variant<std::optional<double> SamplingOptions::*,
                              std::optional<int64_t> SamplingOptions::*,
                              std::optional<uint64_t> SamplingOptions::*>;
  // Of the same kind of number as `member`.
  using Limits = std::variant<NumberLimits<double>, NumberLimits<int64_t>, NumberLimits<uint64_t>>;
  std::string_view name;   // in /set and in batch lines
  std::string_view alias;  // another name, or ""
  std::string_view flags;  // for CLI11
  std::string_view help;
  Member member;
  Limits limits;
  Suffix suffix = {};               // as people type the number; none in batch lines
  bool minus_one_is_unset = false;  // as if nobody had set the field
};

// `member` is that of `field`.
template <typename Number>
const NumberLimits<Number>& limits_of(const SamplingField& field,
                                      std::optional<Number> SamplingOptions::* /*member*/) {
  return std::get<NumberLimits<Number>>(field.limits);
}

std::span<const SamplingField> sampling_fields();

// The field called `name` or by its alias, "-" and "_" being the same; nullptr when there is none.
const SamplingField* find_sampling_field(std::string_view name);

// Reads `text` into the field. Throws UsageError, which calls it `name`, when it is not a number
// within the field's limits.
void set_sampling_field(SamplingOptions& options, const SamplingField& field,
                        const std::string& name, const std::string& text);

// Tokens to keep free for an answer where nobody says how long it may be.
inline constexpr int64_t kUsualAnswerTokens = 512;

// A seed of 32 bits: short enough to read out and type.
uint64_t random_seed();

// `options` over `defaults`, with a random seed where sampling needs one and none was set. Throws
// Error naming the field and its range when a value is out of it.
SamplingParams resolve_sampling(const SamplingOptions& options, const SamplingParams& defaults);

// `over` where it sets something, else `base`.
SamplingOptions merged(const SamplingOptions& base, const SamplingOptions& over);

}  // namespace tessera
