// What normalizers of tokenizer.json do to Unicode text: normal forms, letter case, marks and white
// space, by the tables of utf8proc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model_loaders/pause.h"

namespace tessera {

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// The text in that form; nothing when it is in that form already, as a look at single characters
// can tell. The text is UTF-8.
std::optional<std::string> to_normal_form(std::string_view text, NormalForm form,
                                          const Pause& pause);

// How many bytes of text become one byte of the form at most.
int64_t max_shrinking(NormalForm form);

// Each character by itself: a sigma at the end of a word is one like others.
std::string to_lower_case(std::string_view text, const Pause& pause);

// Without marks: the characters of category M.
std::string without_marks(std::string_view text, const Pause& pause);

// Without the characters of White_Space at one end, or both.
std::string_view stripped(std::string_view text, bool left, bool right);

}  // namespace tessera
