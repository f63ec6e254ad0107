#include "model_loaders/json_text.h"

#include <algorithm>

namespace tessera {

Error invalid_json(const JsonSource& source, size_t offset_bytes) {
  return Error(concat(source.prefix(), "invalid JSON at ", source.byte_name, " ", offset_bytes));
}

size_t offset_of_parser_position(size_t position, std::string_view text) {
  return std::min(position == 0 ? 0 : position - 1, text.size());
}

void check_json_text(std::string_view text, const JsonSource& source) {
  if (text.starts_with("\xEF\xBB\xBF")) throw invalid_json(source, 0);
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw invalid_json(source, nul);
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
