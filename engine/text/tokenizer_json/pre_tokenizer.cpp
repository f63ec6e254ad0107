#include "engine/text/tokenizer_json/pre_tokenizer.h"

#include <algorithm>

#include "kernels/tensor/check.h"
#include "model_loaders/byte_level.h"

namespace tessera {
namespace {

using Kind = PreTokenizerStep::Kind;

constexpr size_t kMatchesBetweenPauses = 4096;
constexpr size_t kReplacedBytesBetweenPauses = 1 << 20;

// Makes words of the matches in a text and of what lies between them, as these are found: a list of
// all would take more memory than the text.
template <typename Receive>
class WordMaker {
 public:
  WordMaker(SplitBehavior behavior, const Receive& receive)
      : behavior_(behavior), receive_(receive) {}

  void add(TextSpan part, bool is_match) {
    if (is_match && behavior_ == SplitBehavior::kRemoved) return;
    if (has_word_ && joins_word(is_match)) {
      word_.end = part.end;
    } else {
      finish();
      word_ = part;
      has_word_ = true;
    }
    follows_match_ = is_match;
  }
  void finish() {
    if (has_word_) receive_(word_);
    has_word_ = false;
  }

 private:
  // Whether a part belongs to the word that the part before it is in. Of neighbouring matches only
  // the first is merged with what precedes it, only the last with what follows.
  bool joins_word(bool is_match) const {
    switch (behavior_) {
      case SplitBehavior::kIsolated:
      case SplitBehavior::kRemoved:
        return false;
      case SplitBehavior::kMergedWithPrevious:
        return is_match && !follows_match_;
      case SplitBehavior::kMergedWithNext:
        return !is_match && follows_match_;
      case SplitBehavior::kContiguous:
        return is_match == follows_match_;
    }
    return false;
  }

  SplitBehavior behavior_;
  const Receive& receive_;
  TextSpan word_;  // which the next part may join
  bool has_word_ = false;
  bool follows_match_ = false;
};

std::string replace_spaces(std::string_view text, std::string_view replacement,
                           const Pause& pause) {
  std::string result;
  result.reserve(text.size() + text.size() / 2);
  while (!text.empty()) {
    const std::string_view block = text.substr(0, kReplacedBytesBetweenPauses);
    for (const char byte : block) {
      if (byte == ' ') {
        result += replacement;
      } else {
        result += byte;
      }
    }
    text.remove_prefix(block.size());
    if (!text.empty()) pause();
  }
  return result;
}

// The text that a step divides: with what it puts in front, or instead of spaces.
std::string_view prepare(const PreTokenizerStep& step, std::string_view text, size_t first_bytes,
                         const Pause& pause, std::string& storage) {
  if (step.kind == Kind::kByteLevel && step.adds_prefix_space && !text.starts_with(' ')) {
    return storage = ' ' + std::string(text);
  }
  if (step.kind != Kind::kMetaspace) return text;
  storage = replace_spaces(text, step.replacement, pause);
  const bool prepends = step.prepend_scheme == PrependScheme::kAlways ||
                        (step.prepend_scheme == PrependScheme::kFirst && first_bytes > 0);
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

// Calls receive(span) for each word that the step makes of the text.
template <typename Receive>
void divide(std::string_view text, const PreTokenizerStep& step, const Pattern& pattern,
            const Pause& pause, const Receive& receive) {
  WordMaker words(behavior_of(step), receive);
  PatternMatches matches(pattern, text);
  size_t end = 0;
  for (size_t count = 1; const auto match = matches.next(); ++count) {
    if (count % kMatchesBetweenPauses == 0) pause();
    if (match->begin > end) words.add({end, match->begin}, step.inverts);
    words.add(*match, !step.inverts);
    end = match->end;
  }
  if (end < text.size()) words.add({end, text.size()}, step.inverts);
  words.finish();
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

void PreTokenizer::split(std::string_view text, size_t first_bytes, const Pause& pause,
                         const Receive& receive) const {
  run(0, text, first_bytes, pause, receive);
}

void PreTokenizer::run(size_t index, std::string_view text, size_t first_bytes, const Pause& pause,
                       const Receive& receive) const {
  if (text.empty()) return;
  if (index == steps_.size()) {
    return splits_bytes_ ? receive(*bytes_of_byte_level(text)) : receive(text);
  }
  const auto& [step, pattern] = steps_[index];
  std::string storage;
  text = prepare(step, text, first_bytes, pause, storage);
  const auto run_next = [&](TextSpan span) {
    const std::string_view part = text.substr(span.begin, span.end - span.begin);
    const size_t rest = rest_of_first(first_bytes, span.begin);
    if (splits_bytes_ && sees_bytes(step)) {
      return run(index + 1, byte_level_of(part), rest, pause, receive);
    }
    run(index + 1, part, rest, pause, receive);
  };
  if (!pattern) return run_next({0, text.size()});
  divide(text, step, *pattern, pause, run_next);
}

bool PreTokenizer::drops_text() const {
  return std::ranges::any_of(steps_, [](const Step& step) {
    return step.step.kind == Kind::kSplit && step.step.behavior == SplitBehavior::kRemoved;
  });
}

}  // namespace tessera
