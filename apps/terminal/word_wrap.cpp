#include "apps/terminal/word_wrap.h"

#include <utility>

#include "apps/terminal/graphemes.h"
#include "engine/text/utf8.h"

namespace tessera {
namespace {

// Chinese and Japanese lines break between any two characters, but not before these.
constexpr std::string_view kNotAtLineStart = "、。，．！？：；）」』】》〉・ー…";

bool is_wide(std::string_view character) { return display_width(character) == 2; }

}  // namespace

std::string WordWrap::feed(std::string_view text, size_t width) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = text.substr(at, utf8_character_bytes(text[at]));
    if (character == "\n") {
      end_line(width);
    } else if (character == " " || character == "\t") {
      end_word(width);
      put_space(character);
    } else {
      put_character(character, width);
    }
    at += character.size();
  }
  return std::exchange(written_, "");
}

std::string WordWrap::finish(size_t width) {
  end_word(width);
  spaces_.clear();
  return std::exchange(written_, "");
}

void WordWrap::put_space(std::string_view space) {
  constexpr size_t kTabColumns = 8;
  const bool is_tab = space == "\t" && !is_code_;
  const size_t columns = kTabColumns - (column_ + spaces_.size()) % kTabColumns;
  is_word_begun_ = false;
  spaces_ += is_tab ? std::string(columns, ' ') : std::string(space);
}

void WordWrap::put_character(std::string_view character, size_t width) {
  if (begins_word(character)) end_word(width);
  word_ += character;
  word_width_ += static_cast<size_t>(display_width(character));
  if (word_width_ < width) return;
  end_word(width);
  is_word_begun_ = true;
}

// Between letters of the Latin, Arabic or Thai script no word begins; around wide ones it does.
bool WordWrap::begins_word(std::string_view character) const {
  if (word_.empty() || kNotAtLineStart.find(character) != std::string_view::npos) return false;
  const std::string both = word_ + std::string(character);
  if (previous_grapheme(both, both.size()) < word_.size()) return false;  // one emoji or syllable
  const size_t last = previous_grapheme(word_, word_.size());
  return is_wide(character) || is_wide(std::string_view(word_).substr(last));
}

void WordWrap::end_word(size_t width) {
  if (word_.empty()) return;
  const bool is_fence = is_line_start_ && (word_.starts_with("```") || word_.starts_with("~~~"));
  if (is_fence) is_code_ = !is_code_;
  const size_t end = column_ + spaces_.size() + word_width_;
  if (end > width && column_ > 0 && !is_code_ && !is_word_begun_) {
    spaces_.clear();
    written_ += '\n';
    column_ = 0;
  }
  column_ += spaces_.size() + word_width_;
  // What is longer than a line the terminal itself breaks.
  if (column_ > width) column_ = (column_ - 1) % width + 1;
  written_ += std::exchange(spaces_, "") + std::exchange(word_, "");
  word_width_ = 0;
  is_line_start_ = false;
  is_word_begun_ = false;
}

void WordWrap::end_line(size_t width) {
  end_word(width);
  spaces_.clear();  // at the edge of the screen they would wrap
  written_ += '\n';
  column_ = 0;
  is_line_start_ = true;
  is_word_begun_ = false;
}

}  // namespace tessera
