// A template as tokens: text between tags, and names, literals and operators within them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/jinja/source_position.h"

namespace tessera::jinja {

struct Token {
  enum class Kind : uint8_t {
    kText,         // between tags
    kOutputBegin,  // {{
    kOutputEnd,    // }}
    kTagBegin,     // {%
    kTagEnd,       // %}
    kName,
    kInteger,
    kFloat,
    kString,  // without quotes and escapes
    kOperator,
    kEnd,  // of the template, always the last
  };

  Kind kind = Kind::kEnd;
  std::string content;
  SourcePosition position;

  bool is_operator(std::string_view symbol) const {
    return kind == Kind::kOperator && content == symbol;
  }
  bool is_name(std::string_view name) const { return kind == Kind::kName && content == name; }
};

// With the white space control of Hugging Face: a newline behind a tag and blanks before one that
// begins a line are dropped (trim_blocks, lstrip_blocks), as {%- -%} asks and {%+ +%} forbids.
// Throws Error with line and column.
std::vector<Token> tokenize_template(std::string_view source);

}  // namespace tessera::jinja
