#include "engine/text/jinja/token_stream.h"

#include "model_loaders/printable.h"

namespace tessera::jinja {
namespace {

std::string description(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kText:
      return "text";
    case Token::Kind::kOutputBegin:
      return "{{";
    case Token::Kind::kOutputEnd:
      return "}}";
    case Token::Kind::kTagBegin:
      return "{%";
    case Token::Kind::kTagEnd:
      return "%}";
    case Token::Kind::kEnd:
      return "end of the template";
    default:
      return concat("'", printable(token.content), "'");
  }
}

}  // namespace

Token TokenStream::take() {
  Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::skip_operator(std::string_view symbol) {
  if (!current().is_operator(symbol)) return false;
  take();
  return true;
}

bool TokenStream::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

void TokenStream::expect_operator(std::string_view symbol) {
  if (!skip_operator(symbol)) throw unexpected(concat("'", symbol, "'"));
}

void TokenStream::expect(Token::Kind kind, std::string_view what) {
  if (current().kind != kind) throw unexpected(what);
  take();
}

std::string TokenStream::expect_name() {
  if (current().kind != Token::Kind::kName) throw unexpected("a name");
  return take().content;
}

Error TokenStream::unexpected(std::string_view what) const {
  return error_at(current().position,
                  concat("unexpected ", description(current()), ", expected ", what));
}

}  // namespace tessera::jinja
