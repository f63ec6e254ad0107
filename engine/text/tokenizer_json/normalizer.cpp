#include "engine/text/tokenizer_json/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// Hangul syllables: three letters of three bytes become one character of three.
constexpr int64_t kMaxNfcShrinking = 3;

// Below U+0300, every character is composed and nothing combines.
bool is_surely_nfc(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char byte) { return static_cast<unsigned char>(byte) < 0xCC; });
}

std::string to_nfc(std::string_view text) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  CHECK(bytes >= 0, "composing characters (NFC) fails: ", utf8proc_errmsg(bytes));
  return {reinterpret_cast<const char*>(composed), static_cast<size_t>(bytes)};
}

std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  PatternMatches matches(pattern, text);
  size_t end = 0;
  while (const auto match = matches.next()) {
    result += text.substr(end, match->begin - end);
    result += content;
    end = match->end;
  }
  return result += text.substr(end);
}

}  // namespace

Normalizer::Normalizer(const TokenizerJson& json) {
  for (const NormalizerStep& step : json.normalizer) {
    steps_.push_back({.step = step});
    if (step.kind != NormalizerStep::Kind::kReplace) continue;
    steps_.back().pattern.emplace(step.pattern, concat(json.path, ": ", step.field));
  }
}

std::string_view Normalizer::apply(std::string_view text, std::string& storage) const {
  for (const auto& [step, pattern] : steps_) {
    switch (step.kind) {
      case NormalizerStep::Kind::kNfc:
        if (!is_surely_nfc(text)) text = storage = to_nfc(text);
        break;
      case NormalizerStep::Kind::kPrepend:
        if (!text.empty()) text = storage = step.content + std::string(text);
        break;
      case NormalizerStep::Kind::kReplace:
        text = storage = replace_all(text, *pattern, step.content);
        break;
    }
  }
  return text;
}

std::optional<int64_t> Normalizer::max_shrinking() const {
  int64_t result = 1;
  for (const auto& [step, pattern] : steps_) {
    if (step.kind == NormalizerStep::Kind::kNfc) result *= kMaxNfcShrinking;
    const bool replaces = step.kind == NormalizerStep::Kind::kReplace;
    if (replaces && (step.pattern.is_regex || step.content.size() < step.pattern.text.size())) {
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace tessera
