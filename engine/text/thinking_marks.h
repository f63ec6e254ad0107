// What models write around their thoughts.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace tessera {

struct ThinkingMarks {
  std::string_view begin;
  std::string_view end;
};

// Those of Command A and Command R, Seed-OSS and Magistral, each tokens of these models alone, and,
// last, what all others write.
inline constexpr std::array<ThinkingMarks, 4> kThinkingMarks = {
    {{"<|START_THINKING|>", "<|END_THINKING|>"},
     {"<seed:think>", "</seed:think>"},
     {"[THINK]", "[/THINK]"},
     {"<think>", "</think>"}}};

// A token with this content shows in a text, even where it is special.
constexpr bool is_thinking_mark(std::string_view content) {
  return std::ranges::any_of(kThinkingMarks, [content](const ThinkingMarks& marks) {
    return content == marks.begin || content == marks.end;
  });
}

}  // namespace tessera
