// Documents of shapes that nobody plans for, the same on every run.
#pragma once

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/repeated.h"

namespace tessera {

inline constexpr int kNumOddDocuments = 240;

// Words and line ends of all kinds, drawn by chance.
inline std::string mixed_text(std::mt19937& random, int num_parts) {
  static const std::vector<std::string_view> kParts = {"word",
                                                       " ",
                                                       "  ",
                                                       "\n",
                                                       "\n\n",
                                                       "\r\n",
                                                       "\r\n\r\n",
                                                       ". ",
                                                       "! ",
                                                       "é",
                                                       "e\xCC\x81",
                                                       "🦊",
                                                       "👩‍👩‍👧",
                                                       "日本語。",
                                                       "\t",
                                                       "0.5",
                                                       "a▁b",
                                                       "\xC2\xA0",
                                                       ")",
                                                       "\""};
  std::string text;
  for (int i = 0; i < num_parts; ++i) text += kParts[random() % kParts.size()];
  return text;
}

// Document number `index` of kNumOddDocuments.
inline std::string odd_document(int index) {
  std::mt19937 random(static_cast<unsigned>(index));
  const int count = 1 + static_cast<int>(random() % 600);
  switch (index % 12) {
    case 0:  // one giant line
      return repeated("the line goes on ", count);
    case 1:  // no spaces
      return repeated("abcdefghij", count);
    case 2:  // emoji, some of several characters
      return repeated("🦊🏳️‍🌈👩‍👩‍👧", count / 4 + 1);
    case 3:
      return repeated("A line of DOS.\r\n", count / 4 + 1);
    case 4:  // only line ends
      return repeated("\n", count);
    case 5:
      return repeated("\r\n", count);
    case 6:
      return repeated(" ", count * 3);
    case 7:  // accents by themselves, which some tokenizers compose
      return repeated("e\xCC\x81tude ", count);
    case 8:  // no ASCII
      return repeated("日本語の文。", count);
    case 9:
      return repeated("A sentence. Another one!\nA line\n\nA paragraph (in brackets.) ",
                      count / 8 + 1);
    case 10:  // a single character
      return std::string(1, static_cast<char>('a' + index % 26));
    default:
      return mixed_text(random, count * 4);
  }
}

}  // namespace tessera
