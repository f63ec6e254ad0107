#include "engine/text/tokenizer_json/pre_tokenizer.h"

#include <algorithm>

#include "engine/text/tokenizer_json/byte_level.h"
#include "kernels/tensor/check.h"

namespace tessera {
namespace {

using Kind = PreTokenizerStep::Kind;

struct Part {
  TextSpan span;
  bool is_match = false;
};

std::vector<Part> divide(std::string_view text, const Pattern& pattern, bool inverts) {
  std::vector<Part> parts;
  PatternMatches matches(pattern, text);
  size_t end = 0;
  while (const auto match = matches.next()) {
    if (match->begin > end) parts.push_back({{end, match->begin}, inverts});
    parts.push_back({*match, !inverts});
    end = match->end;
  }
  if (end < text.size()) parts.push_back({{end, text.size()}, inverts});
  return parts;
}

void merge_contiguous(std::vector<Part>& parts) {
  std::vector<Part> merged;
  for (const Part& part : parts) {
    if (!merged.empty() && merged.back().is_match == part.is_match) {
      merged.back().span.end = part.span.end;
    } else {
      merged.push_back(part);
    }
  }
  parts = std::move(merged);
}

// A match joins the part before it, unless that is a match too.
void merge_with_previous(std::vector<Part>& parts) {
  std::vector<Part> merged;
  bool follows_match = false;
  for (const Part& part : parts) {
    if (part.is_match && !follows_match && !merged.empty()) {
      merged.back().span.end = part.span.end;
    } else {
      merged.push_back(part);
    }
    follows_match = part.is_match;
  }
  parts = std::move(merged);
}

void merge_with_next(std::vector<Part>& parts) {
  std::vector<Part> merged;
  bool precedes_match = false;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (part->is_match && !precedes_match && !merged.empty()) {
      merged.back().span.begin = part->span.begin;
    } else {
      merged.push_back(*part);
    }
    precedes_match = part->is_match;
  }
  std::ranges::reverse(merged);
  parts = std::move(merged);
}

void apply(SplitBehavior behavior, std::vector<Part>& parts) {
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return;
    case SplitBehavior::kRemoved:
      std::erase_if(parts, [](const Part& part) { return part.is_match; });
      return;
    case SplitBehavior::kMergedWithPrevious:
      return merge_with_previous(parts);
    case SplitBehavior::kMergedWithNext:
      return merge_with_next(parts);
    case SplitBehavior::kContiguous:
      return merge_contiguous(parts);
  }
}

std::string replace_spaces(std::string_view text, std::string_view replacement) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  for (const char byte : text) {
    if (byte == ' ') {
      result += replacement;
    } else {
      result += byte;
    }
  }
  return result;
}

// The text that a step divides: with what it puts in front, or instead of spaces.
std::string_view prepare(const PreTokenizerStep& step, std::string_view text, bool at_start,
                         std::string& storage) {
  if (step.kind == Kind::kByteLevel && step.adds_prefix_space && !text.starts_with(' ')) {
    return storage = ' ' + std::string(text);
  }
  if (step.kind != Kind::kMetaspace) return text;
  storage = replace_spaces(text, step.replacement);
  const bool prepends = step.prepend_scheme == PrependScheme::kAlways ||
                        (step.prepend_scheme == PrependScheme::kFirst && at_start);
  if (prepends && !storage.starts_with(step.replacement)) storage.insert(0, step.replacement);
  return storage;
}

// Where the step divides; not where it does not.
std::optional<TokenizerPattern> pattern_of(const PreTokenizerStep& step) {
  if (step.kind == Kind::kSplit) return step.pattern;
  if (!step.splits) return std::nullopt;
  if (step.kind == Kind::kMetaspace) return TokenizerPattern{.text = step.replacement};
  return TokenizerPattern{.text = std::string(kByteLevelPattern), .is_regex = true};
}

bool sees_bytes(const PreTokenizerStep& step) { return step.kind == Kind::kByteLevel; }

// ByteLevel after a Split: what it says of words is_byte_level() tells.
bool changes_nothing(const PreTokenizerStep& step) {
  return step.kind == Kind::kByteLevel && !step.splits && !step.adds_prefix_space;
}

SplitBehavior behavior_of(const PreTokenizerStep& step) {
  return step.kind == Kind::kMetaspace ? SplitBehavior::kMergedWithNext : step.behavior;
}

}  // namespace

PreTokenizer::PreTokenizer(const TokenizerJson& json)
    : is_byte_level_(std::ranges::any_of(json.pre_tokenizer, sees_bytes)),
      splits_bytes_(is_byte_level_ && !sees_bytes(json.pre_tokenizer.back())) {
  for (const PreTokenizerStep& step : json.pre_tokenizer) {
    if (changes_nothing(step) && !splits_bytes_) continue;
    steps_.push_back({.step = step});
    if (const auto pattern = pattern_of(step)) {
      steps_.back().pattern.emplace(*pattern, concat(json.path, ": ", step.field));
    }
  }
}

void PreTokenizer::split(std::string_view text, bool at_start, const Receive& receive) const {
  run(0, text, at_start, receive);
}

void PreTokenizer::run(size_t index, std::string_view text, bool at_start,
                       const Receive& receive) const {
  if (text.empty()) return;
  if (index == steps_.size()) {
    return splits_bytes_ ? receive(*bytes_of_byte_level(text)) : receive(text);
  }
  const auto& [step, pattern] = steps_[index];
  std::string storage;
  text = prepare(step, text, at_start, storage);
  const auto run_next = [&](size_t begin, size_t end) {
    const std::string_view part = text.substr(begin, end - begin);
    const bool is_start = at_start && begin == 0;
    if (splits_bytes_ && sees_bytes(step))
      return run(index + 1, byte_level_of(part), is_start, receive);
    run(index + 1, part, is_start, receive);
  };
  if (!pattern) return run_next(0, text.size());
  if (behavior_of(step) == SplitBehavior::kIsolated) {
    // What nearly all models do needs no list of the parts.
    PatternMatches matches(*pattern, text);
    size_t end = 0;
    while (const auto match = matches.next()) {
      run_next(end, match->begin);
      run_next(match->begin, match->end);
      end = match->end;
    }
    return run_next(end, text.size());
  }
  std::vector<Part> parts = divide(text, *pattern, step.inverts);
  apply(behavior_of(step), parts);
  for (const Part& part : parts) run_next(part.span.begin, part.span.end);
}

bool PreTokenizer::drops_text() const {
  return std::ranges::any_of(steps_, [](const Step& step) {
    return step.step.kind == Kind::kSplit && step.step.behavior == SplitBehavior::kRemoved;
  });
}

}  // namespace tessera
