#include "engine/text/tokenizer_json/normalizer.h"

#include <algorithm>

#include "engine/text/tokenizer_json/unicode_text.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"

namespace tessera {
namespace {

constexpr size_t kReplacementsBetweenPauses = 4096;

// `first_bytes` of a text, and then of what becomes of it, as in Normalized.
std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content,
                        const Pause& pause, size_t& first_bytes) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  PatternMatches matches(pattern, text);
  const size_t first_end = first_bytes;
  size_t end = 0;
  for (size_t count = 1; const auto match = matches.next(); ++count) {
    if (count % kReplacementsBetweenPauses == 0) pause();
    result += text.substr(end, match->begin - end);
    // What is put there stands for the last character of the match.
    if (match->end <= first_end) {
      first_bytes += content.size() - (match->end - match->begin);
    } else if (match->begin < first_end) {
      first_bytes = result.size();
    }
    result += content;
    end = match->end;
  }
  return result += text.substr(end);
}

// How much of `formed` stands for the text's `first` characters, which may have become one with
// those behind them.
size_t first_bytes_of_form(std::string_view formed, std::string_view first, NormalForm form) {
  const auto changed = to_normal_form(first, form, [] {});
  size_t end = std::min(changed ? changed->size() : first.size(), formed.size());
  while (end < formed.size() && is_utf8_continuation(formed[end])) ++end;
  return end;
}

// Of a step that is one.
std::optional<NormalForm> normal_form(const NormalizerStep& step) {
  switch (step.kind) {
    case NormalizerStep::Kind::kNfc:
      return NormalForm::kNfc;
    case NormalizerStep::Kind::kNfd:
      return NormalForm::kNfd;
    case NormalizerStep::Kind::kNfkc:
      return NormalForm::kNfkc;
    case NormalizerStep::Kind::kNfkd:
      return NormalForm::kNfkd;
    default:
      return std::nullopt;
  }
}

// How many bytes of text become one byte at most; nothing where there is no limit.
std::optional<int64_t> shrinking_of(const NormalizerStep& step) {
  using Kind = NormalizerStep::Kind;
  constexpr int64_t kLowerCase = 3;  // U+212A, of three bytes, becomes "k"
  if (const auto form = normal_form(step)) return max_shrinking(*form);
  if (step.kind == Kind::kPrepend) return 1;
  if (step.kind == Kind::kLowercase) return kLowerCase;
  const bool never_shrinks = step.kind == Kind::kReplace && !step.pattern.is_regex &&
                             step.content.size() >= step.pattern.text.size();
  return never_shrinks ? std::optional<int64_t>(1) : std::nullopt;
}

}  // namespace

Normalizer::Normalizer(const TokenizerJson& json) {
  for (const NormalizerStep& step : json.normalizer) {
    steps_.push_back({.step = step});
    if (step.kind != NormalizerStep::Kind::kReplace) continue;
    steps_.back().pattern.emplace(step.pattern, concat(json.path, ": ", step.field));
  }
}

Normalized Normalizer::apply(std::string_view text, const Pause& pause,
                             std::string& storage) const {
  size_t first_bytes = utf8_character_bytes(text[0]);
  for (const auto& [step, pattern] : steps_) {
    const std::string_view first = text.substr(0, first_bytes);
    if (const auto form = normal_form(step)) {
      if (auto formed = to_normal_form(text, *form, pause)) {
        first_bytes = first_bytes_of_form(*formed, first, *form);
        text = storage = std::move(*formed);
      }
      continue;
    }
    switch (step.kind) {
      case NormalizerStep::Kind::kLowercase:
        first_bytes = to_lower_case(first, pause).size();
        text = storage = to_lower_case(text, pause);
        break;
      case NormalizerStep::Kind::kStripAccents:
        first_bytes = without_marks(first, pause).size();
        text = storage = without_marks(text, pause);
        break;
      case NormalizerStep::Kind::kStrip: {
        const std::string_view rest = stripped(text, step.strips_left, step.strips_right);
        first_bytes -= std::min(first_bytes, static_cast<size_t>(rest.data() - text.data()));
        text = rest;
        break;
      }
      case NormalizerStep::Kind::kPrepend:
        if (first_bytes > 0) first_bytes += step.content.size();
        if (!text.empty()) text = storage = step.content + std::string(text);
        break;
      case NormalizerStep::Kind::kReplace:
        // To the library nothing matches an empty text.
        if (text.empty()) break;
        text = storage = replace_all(text, *pattern, step.content, pause, first_bytes);
        break;
      default:
        break;
    }
  }
  return {text, first_bytes};
}

std::optional<int64_t> Normalizer::max_shrinking() const {
  int64_t result = 1;
  for (const auto& [step, pattern] : steps_) {
    const auto of_step = shrinking_of(step);
    if (!of_step) return std::nullopt;
    result *= *of_step;
  }
  return result;
}

}  // namespace tessera
