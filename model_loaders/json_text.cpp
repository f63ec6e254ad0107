#include "model_loaders/json_text.h"

#include <algorithm>

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_utf16(std::string_view text) {
  return text.starts_with("\xFF\xFE"sv) || text.starts_with("\xFE\xFF"sv);
}

// Why there is no JSON at `offset_bytes`, where that is easy to tell; else "".
std::string known_mistake(std::string_view text, size_t offset_bytes) {
  if (text.starts_with(kByteOrderMark)) return "the text begins with a byte order mark";
  if (is_utf16(text)) return "the text is UTF-16, JSON is UTF-8";
  if (text.empty()) return "there is none";
  if (offset_bytes >= text.size()) return "the text ends too early";
  const char found = text[offset_bytes];
  if (found == '/' || found == '#') return "JSON has no comments";
  const std::string_view before = text.substr(0, offset_bytes);
  const size_t last = before.find_last_not_of(" \t\r\n");
  const bool is_after_comma = last != std::string_view::npos && before[last] == ',';
  if (is_after_comma && (found == '}' || found == ']')) {
    return concat("a comma stands before the last '", found, "'");
  }
  return "";
}

}  // namespace

Error invalid_json(const JsonSource& source, size_t offset_bytes) {
  return Error(concat(source.prefix(), "invalid JSON at ", source.byte_name, " ", offset_bytes));
}

Error invalid_json(const JsonSource& source, size_t offset_bytes, std::string_view text) {
  const auto line = std::ranges::count(text.substr(0, offset_bytes), '\n') + 1;
  const std::string mistake = known_mistake(text, offset_bytes);
  return Error(concat(invalid_json(source, offset_bytes).what(),
                      line > 1 ? concat(" (line ", line, ")") : "", mistake.empty() ? "" : ": ",
                      mistake));
}

size_t offset_of_parser_position(size_t position, std::string_view text) {
  return std::min(position == 0 ? 0 : position - 1, text.size());
}

void check_json_text(std::string_view text, const JsonSource& source) {
  if (text.starts_with(kByteOrderMark) || is_utf16(text)) throw invalid_json(source, 0, text);
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw invalid_json(source, nul, text);
  }
  size_t nesting = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') {
      if (++nesting <= kMaxJsonNesting) continue;
      throw JsonLimitError(concat(source.prefix(), "JSON nesting too deep at ", source.byte_name,
                                  " ", i, " (limit ", kMaxJsonNesting, ")"));
    } else if ((text[i] == '}' || text[i] == ']') && nesting > 0) {
      --nesting;
    } else if (text[i] == '"') {
      const size_t begin = i++;
      while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
      if (i - begin <= kMaxJsonStringBytes) continue;
      throw JsonLimitError(concat(source.prefix(), "a JSON string at ", source.byte_name, " ",
                                  begin, " is longer than ", kMaxJsonStringBytes, " bytes"));
    }
  }
}

}  // namespace tessera
