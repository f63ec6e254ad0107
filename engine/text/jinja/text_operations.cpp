#include "engine/text/jinja/text_operations.h"

#include <algorithm>

#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/operators.h"

namespace tessera::jinja {
namespace {

std::string_view escape_of(char character) {
  switch (character) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '\'':
      return "&#39;";
    case '"':
      return "&#34;";
    default:
      return {};
  }
}

Text markup_of(const Text& text, Runtime& runtime) {
  const std::string_view bytes = text.bytes();
  Text result;
  result.set_markup();
  size_t kept = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::string_view escape = escape_of(bytes[i]);
    if (escape.empty()) continue;
    runtime.count_text(escape.size() + i - kept);
    runtime.check_text_size(result.size() + escape.size() + i - kept);
    result.append(text, kept, i);
    result.append(escape, text.origin_at(i));
    kept = i + 1;
  }
  result.append(text, kept, bytes.size());
  return result;
}

}  // namespace

void join(const Text& part, Text& text, Runtime& runtime) {
  if (part.is_markup() && !text.is_markup()) text = markup_of(text, runtime);
  if (text.is_markup() && !part.is_markup()) return join(markup_of(part, runtime), text, runtime);
  runtime.check_text_size(text.size() + part.size());
  text.append(part);
}

Text stripped(const Text& text, const Text* characters, Side side) {
  const std::string_view bytes = text.bytes();
  const auto drops = [&](size_t begin, size_t end) {
    if (characters == nullptr) return is_space(character_at(bytes, begin).code_point);
    const std::string_view wanted = bytes.substr(begin, end - begin);
    return characters->bytes().find(wanted) != std::string::npos;
  };
  size_t begin = 0;
  size_t end = bytes.size();
  while (side != Side::kRight && begin < end) {
    const size_t next = begin + character_at(bytes, begin).num_bytes;
    if (!drops(begin, next)) break;
    begin = next;
  }
  while (side != Side::kLeft && begin < end) {
    const size_t last = character_before(bytes, end);
    if (!drops(last, end)) break;
    end = last;
  }
  return text.slice(begin, end);
}

Text replaced(const Text& text, const Text& pattern, const Text& replacement, int64_t max_count,
              Runtime& runtime) {
  if (pattern.empty()) throw runtime.error("replace: the text to replace is empty");
  Text result;
  size_t kept = 0;
  for (int64_t count = 0; max_count < 0 || count < max_count; ++count) {
    const auto found = find_text(text.bytes(), pattern.bytes(), kept, runtime);
    if (!found) break;
    result.append(text, kept, *found);
    result.append(replacement);
    kept = *found + pattern.size();
    runtime.count_steps(1 + replacement.size() / 16);
    if (count % 1024 == 1023) runtime.count_text(result.size());
  }
  result.append(text, kept, text.size());
  return result;
}

std::vector<Text> split_lines(const Text& text, Runtime& runtime) {
  const std::string& bytes = text.bytes();
  const auto ends_line = [](char32_t c) {
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
  };
  runtime.count_text(bytes.size());
  std::vector<Text> lines;
  size_t begin = 0;
  for (size_t i = 0; i < bytes.size();) {
    const Character character = character_at(bytes, i);
    size_t next = i + character.num_bytes;
    if (ends_line(character.code_point)) {
      if (bytes[i] == '\r' && next < bytes.size() && bytes[next] == '\n') ++next;
      runtime.count_elements(2);
      lines.push_back(text.slice(begin, i));
      begin = next;
    }
    i = next;
  }
  if (begin < bytes.size()) lines.push_back(text.slice(begin, bytes.size()));
  return lines;
}

}  // namespace tessera::jinja
