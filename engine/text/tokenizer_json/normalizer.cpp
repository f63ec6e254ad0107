#include "engine/text/tokenizer_json/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// Hangul syllables: three letters of three bytes become one character of three.
constexpr int64_t kMaxNfcShrinking = 3;

// Composing more than one word at a time costs less.
constexpr size_t kComposedBytes = 256;
constexpr size_t kReplacementsBetweenPauses = 4096;

// The characters up to U+02FF and from U+4000 to U+9FFF are composed already, and compose with none
// before them. `lead` begins a character or is within one.
bool begins_anew(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 || (byte >= 0xC2 && byte < 0xCC) || (byte >= 0xE4 && byte <= 0xE9);
}

// The same is true of U+2002 to U+203F, the quotes and dashes of printed English.
bool is_general_punctuation(std::string_view text) {
  return text.starts_with("\xE2\x80") && static_cast<unsigned char>(text[2]) >= 0x82;
}

// How much of the beginning is composed, as a look at single characters can tell.
size_t composed_prefix(std::string_view text) {
  size_t end = ascii_prefix(text);
  while (end < text.size() &&
         (begins_anew(text[end]) || is_general_punctuation(text.substr(end)))) {
    end += utf8_character_bytes(text[end]);
    end += ascii_prefix(text.substr(end));
  }
  return end;
}

void append_composed(std::string_view text, std::string& result) {
  utf8proc_uint8_t* composed = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &composed,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, &std::free);
  CHECK(bytes >= 0, "composing characters (NFC) fails: ", utf8proc_errmsg(bytes));
  result.append(reinterpret_cast<const char*>(composed), static_cast<size_t>(bytes));
}

// Where `text` may be cut at `at` or later: before a character that composes with none before it.
size_t next_cut(std::string_view text, size_t at) {
  while (at < text.size() && !begins_anew(text[at])) ++at;
  return std::min(at, text.size());
}

// NFC of a text of which `composed` bytes are composed, as composed_prefix() says.
std::string to_nfc(std::string_view text, size_t composed, const Pause& pause) {
  std::string result;
  result.reserve(text.size());
  for (; composed < text.size(); composed = composed_prefix(text)) {
    pause();
    // What comes next may compose with the last of these characters.
    size_t kept = composed;
    while (kept > 0 && is_utf8_continuation(text[--kept])) {
    }
    const size_t end = next_cut(text, composed + kComposedBytes);
    result += text.substr(0, kept);
    append_composed(text.substr(kept, end - kept), result);
    text.remove_prefix(end);
  }
  return result += text;
}

std::string replace_all(std::string_view text, const Pattern& pattern, std::string_view content,
                        const Pause& pause) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  PatternMatches matches(pattern, text);
  size_t end = 0;
  for (size_t count = 1; const auto match = matches.next(); ++count) {
    if (count % kReplacementsBetweenPauses == 0) pause();
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

std::string_view Normalizer::apply(std::string_view text, const Pause& pause,
                                   std::string& storage) const {
  for (const auto& [step, pattern] : steps_) {
    switch (step.kind) {
      case NormalizerStep::Kind::kNfc:
        if (const size_t composed = composed_prefix(text); composed < text.size()) {
          text = storage = to_nfc(text, composed, pause);
        }
        break;
      case NormalizerStep::Kind::kPrepend:
        if (!text.empty()) text = storage = step.content + std::string(text);
        break;
      case NormalizerStep::Kind::kReplace:
        text = storage = replace_all(text, *pattern, step.content, pause);
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
