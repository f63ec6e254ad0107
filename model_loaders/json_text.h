// What must be true of JSON text before a parser may see it.
//
// nlohmann::json reads files that its own specification forbids: it skips a byte order mark, takes
// NUL for the end of the input and nests without limit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

// Where text comes from, for "path: invalid JSON at byte N" or "... at header byte N".
struct JsonSource {
  std::string path;  // "" when the caller says it
  std::string_view byte_name = "byte";

  std::string prefix() const { return path.empty() ? "" : path + ": "; }
};

// Brackets that may be open at the same time.
constexpr size_t kMaxJsonNesting = 64;

// Bytes of one string: what the parser copies is bounded by this, not by the file.
constexpr size_t kMaxJsonStringBytes = size_t{16} << 20;

// The text may be valid, but is more than tessera takes. The message says of what, how much it
// takes, and where.
class JsonLimitError : public Error {
 public:
  using Error::Error;
};

// Throws Error for a byte order mark and a NUL byte, JsonLimitError for nesting deeper than
// kMaxJsonNesting and strings longer than kMaxJsonStringBytes. Does not check anything else.
void check_json_text(std::string_view text, const JsonSource& source);

// "path: invalid JSON at byte N"; `offset_bytes` counts from 0.
Error invalid_json(const JsonSource& source, size_t offset_bytes);
// The same with the line, where there are several, and with what is wrong, where that is one of the
// mistakes that people who write JSON by hand make often.
Error invalid_json(const JsonSource& source, size_t offset_bytes, std::string_view text);

// The parser counts from 1 and, at the end of the text, one further.
size_t offset_of_parser_position(size_t position, std::string_view text);

}  // namespace tessera
