#include "engine/text/jinja/template.h"

#include <set>
#include <string>

#include "engine/text/jinja/interpreter.h"
#include "engine/text/jinja/lexer.h"
#include "engine/text/jinja/parser.h"
#include "engine/text/utf8.h"

namespace tessera::jinja {
namespace {

constexpr size_t kMaxSourceBytes = size_t{256} << 10;

uint64_t bytes_of(const Value& value) {
  uint64_t bytes = 1;
  if (const Text* const text = value.as_text()) bytes += text->size();
  if (const List* const list = value.as_list()) {
    for (const Value& element : list->elements()) bytes += bytes_of(element);
  }
  if (const Dict* const dict = value.as_dict()) {
    for (const auto& [key, element] : dict->entries()) {
      bytes += bytes_of(key) + bytes_of(element);
    }
  }
  return bytes;
}

}  // namespace

struct Template::Program {
  Statements statements;
  std::set<std::string, std::less<>> words;  // names and texts in quotes
};

Template::Template(std::string_view source) {
  CHECK(source.size() <= kMaxSourceBytes, "the chat template has ", source.size(),
        " bytes; at most ", kMaxSourceBytes, " are allowed");
  const auto invalid = find_invalid_utf8(source);
  CHECK(!invalid, "the chat template is not UTF-8 at byte ", invalid.value_or(0));
  Program program;
  program.statements = parse_template(source);
  for (Token& token : tokenize_template(source)) {
    const bool is_word = token.kind == Token::Kind::kName || token.kind == Token::Kind::kString;
    if (is_word) program.words.insert(std::move(token.content));
  }
  program_ = std::make_shared<const Program>(std::move(program));
}

bool Template::mentions(std::string_view word) const { return program_->words.contains(word); }

Text Template::render(const Dict& variables, const Pause& pause) const {
  uint64_t input_bytes = 0;
  for (const auto& [name, value] : variables.entries()) input_bytes += bytes_of(value);
  return Interpreter(variables, input_bytes, pause).run(program_->statements);
}

}  // namespace tessera::jinja
