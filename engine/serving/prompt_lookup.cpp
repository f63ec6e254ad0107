#include "engine/serving/prompt_lookup.h"

#include <algorithm>

namespace tessera {

void PromptLookup::follow(std::span<const TokenId> text) {
  if (!index_) index_.emplace(std::min(lengths_.max_length, 2 * std::ssize(text)));
  while (num_followed_ < std::ssize(text)) {
    follow_token(text.first(static_cast<size_t>(++num_followed_)));
  }
}

void PromptLookup::follow_token(std::span<const TokenId> text) {
  const int64_t size = std::ssize(text);
  if (size < lengths_.prompt_tokens) return index_->add(text);
  bool was_right = false;
  if (size > lengths_.prompt_tokens && match_.length > 0) {
    was_right = text[static_cast<size_t>(match_.position)] == text.back();
    gain_.count(match_.length, was_right);
  }
  if (was_right && match_.length >= NgramIndex::kLongest) {
    ++match_.position;
    ++match_.length;
  } else {
    match_ = index_->find(text);
  }
  index_->add(text);
}

int64_t PromptLookup::most_drafts(int64_t num_tokens, const Room& room) const {
  if (num_tokens < lengths_.first_length) return 0;
  return std::min(room.drafts, lengths_.max_length - num_tokens - 1);
}

// Behind the end of the text, the drafts themselves go on: an answer that repeats a few tokens over
// and over has many drafts.
std::vector<TokenId> PromptLookup::drafts(std::span<const TokenId> text, const Room& room) {
  const int64_t most = most_drafts(std::ssize(text), room);
  if (most <= 0) return {};
  follow(text);
  if (match_.length == 0) return {};
  const int64_t count = gain_.best_count(match_.length, most, room.sequences);
  std::vector<TokenId> drafts;
  for (int64_t i = 0; i < count; ++i) {
    const auto position = static_cast<size_t>(match_.position + i);
    drafts.push_back(position < text.size() ? text[position] : drafts[position - text.size()]);
  }
  return drafts;
}

bool PromptLookup::awaits_drafts(std::span<const TokenId> text, const Room& room) {
  const int64_t most = most_drafts(std::ssize(text) + 1, room);
  if (most <= 0) return false;
  follow(text);
  return match_.length > 0 && gain_.is_worth_waiting(match_.length, most, room.sequences);
}

}  // namespace tessera
