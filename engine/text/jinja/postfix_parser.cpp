// What follows a value: attributes, subscripts, calls, filters and tests.
#include <algorithm>

#include "engine/text/jinja/expression_parser.h"

namespace tessera::jinja {

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr subject) {
  for (;;) {
    if (tokens_.current().is_operator(".")) {
      subject = parse_attribute(std::move(subject));
    } else if (tokens_.current().is_operator("[")) {
      subject = parse_subscript(std::move(subject));
    } else if (tokens_.current().is_operator("(")) {
      subject = parse_call(std::move(subject));
    } else {
      return subject;
    }
  }
}

ExpressionPtr ExpressionParser::parse_attribute(ExpressionPtr subject) {
  ExpressionPtr attribute = make(Kind::kAttribute);
  tokens_.take();
  adopt(*attribute, std::move(subject));
  if (tokens_.current().kind == Token::Kind::kInteger) {
    attribute->kind = Kind::kItem;
    adopt(*attribute, parse_number());
  } else {
    attribute->name = tokens_.expect_name();
  }
  return attribute;
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr subject) {
  ExpressionPtr item = make(Kind::kItem);
  tokens_.take();
  ExpressionPtr first = tokens_.current().is_operator(":") ? nullptr : parse_expression();
  if (tokens_.current().is_operator(":")) {
    return parse_slice(std::move(subject), std::move(first));
  }
  adopt(*item, std::move(subject));
  adopt(*item, std::move(first));
  tokens_.expect_operator("]");
  return item;
}

ExpressionPtr ExpressionParser::parse_slice(ExpressionPtr subject, ExpressionPtr first) {
  ExpressionPtr slice = make(Kind::kSlice);
  adopt(*slice, std::move(subject));
  adopt(*slice, std::move(first));
  for (int i = 0; i < 2; ++i) {
    const bool has_part = tokens_.skip_operator(":") && !tokens_.current().is_operator(":") &&
                          !tokens_.current().is_operator("]");
    adopt(*slice, has_part ? parse_expression() : nullptr);
  }
  tokens_.expect_operator("]");
  return slice;
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr subject) {
  ExpressionPtr call = make(Kind::kCall);
  adopt(*call, std::move(subject));
  parse_arguments(*call);
  return call;
}

void ExpressionParser::parse_arguments(Expression& call) {
  tokens_.expect_operator("(");
  for (bool is_first = true; !tokens_.skip_operator(")"); is_first = false) {
    if (!is_first) tokens_.expect_operator(",");
    if (tokens_.skip_operator(")")) return;
    parse_argument(call);
  }
}

void ExpressionParser::parse_argument(Expression& call) {
  const bool is_named =
      tokens_.current().kind == Token::Kind::kName && tokens_.following().is_operator("=");
  if (tokens_.current().is_operator("**") && call.named_splat == nullptr) {
    tokens_.take();
    call.named_splat = parse_expression();
    adopt_depth(call, call.named_splat);
  } else if (tokens_.current().is_operator("*") && call.splat == nullptr &&
             call.named_splat == nullptr) {
    tokens_.take();
    call.splat = parse_expression();
    adopt_depth(call, call.splat);
  } else if (is_named && call.named_splat == nullptr) {
    std::string name = tokens_.take().content;
    tokens_.take();
    call.named.emplace_back(std::move(name), parse_expression());
    adopt_depth(call, call.named.back().second);
  } else if (call.named.empty() && call.splat == nullptr && call.named_splat == nullptr) {
    adopt(call, parse_expression());
  } else {
    throw tokens_.unexpected("an argument by name");
  }
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = tokens_.expect_name();
  while (tokens_.skip_operator(".")) name += "." + tokens_.expect_name();
  return name;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr subject) {
  ExpressionPtr filter = make(Kind::kFilter);
  filter->name = parse_dotted_name();
  adopt(*filter, std::move(subject));
  if (tokens_.current().is_operator("(")) parse_arguments(*filter);
  return filter;
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr subject) {
  do {
    subject = parse_filter(std::move(subject));
  } while (tokens_.skip_operator("|"));
  return subject;
}

// An argument of a test may follow without brackets.
ExpressionPtr ExpressionParser::parse_test(ExpressionPtr subject) {
  ExpressionPtr negation = make(Kind::kNot);
  const bool is_negated = tokens_.skip_name("not");
  ExpressionPtr test = make(Kind::kTest);
  test->name = parse_dotted_name();
  adopt(*test, std::move(subject));
  const Token& next = tokens_.current();
  const bool is_word = next.is_name("else") || next.is_name("or") || next.is_name("and");
  const bool begins_value = next.kind == Token::Kind::kName || next.kind == Token::Kind::kString ||
                            next.kind == Token::Kind::kInteger ||
                            next.kind == Token::Kind::kFloat || next.is_operator("[") ||
                            next.is_operator("{");
  if (next.is_operator("(")) {
    parse_arguments(*test);
  } else if (begins_value && !is_word) {
    if (next.is_name("is")) throw tokens_.unexpected("one test; 'is' cannot be chained");
    adopt(*test, parse_postfix(parse_primary()));
  }
  if (!is_negated) return test;
  adopt(*negation, std::move(test));
  return negation;
}

}  // namespace tessera::jinja
