// The tokens of a template, one after the other.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/jinja/lexer.h"

namespace tessera::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& following() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token take();

  bool skip_operator(std::string_view symbol);
  bool skip_name(std::string_view name);
  // These throw Error at the token that is there instead.
  void expect_operator(std::string_view symbol);
  void expect(Token::Kind kind, std::string_view what);
  std::string expect_name();

  // "unexpected X, expected `what`".
  Error unexpected(std::string_view what) const;

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
};

}  // namespace tessera::jinja
