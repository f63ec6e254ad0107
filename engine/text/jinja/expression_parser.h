// Expressions of a template.
#pragma once

#include "engine/text/jinja/syntax.h"
#include "engine/text/jinja/token_stream.h"

namespace tessera::jinja {

// Every function throws Error with line and column for what is no expression, and for what is
// nested too deeply to be evaluated or freed by functions that call themselves.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExpressionPtr parse_expression();
  // Without "x if y" outside brackets, which a for statement reads as its own.
  ExpressionPtr parse_without_condition() { return parse_tuple(/*has_conditions=*/false); }
  // One expression, or several with commas between them.
  ExpressionPtr parse_tuple(bool has_conditions = true);
  // Names of filters, of a block, with their arguments; `subject` is the innermost one's.
  ExpressionPtr parse_filters(ExpressionPtr subject);
  Target parse_target();

 private:
  class Level;  // counts open calls
  using Kind = Expression::Kind;

  ExpressionPtr make(Kind kind, std::string name = {}) const;
  void adopt(Expression& parent, ExpressionPtr operand) const;
  void adopt_depth(Expression& parent, const ExpressionPtr& operand) const;
  ExpressionPtr make_binary(Kind kind, std::string name, ExpressionPtr left, ExpressionPtr right);
  bool tuple_ends() const;

  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_comparison();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool has_filters = true);
  ExpressionPtr parse_primary();
  ExpressionPtr parse_name();
  ExpressionPtr parse_strings();
  ExpressionPtr parse_number();
  ExpressionPtr parse_parenthesis();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr subject);
  ExpressionPtr parse_attribute(ExpressionPtr subject);
  ExpressionPtr parse_subscript(ExpressionPtr subject);
  ExpressionPtr parse_slice(ExpressionPtr subject, ExpressionPtr first);
  ExpressionPtr parse_call(ExpressionPtr subject);
  ExpressionPtr parse_filter(ExpressionPtr subject);
  ExpressionPtr parse_test(ExpressionPtr subject);
  void parse_arguments(Expression& call);
  void parse_argument(Expression& call);
  std::string parse_dotted_name();

  TokenStream& tokens_;
  int level_ = 0;
};

}  // namespace tessera::jinja
