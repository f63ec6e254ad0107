#include "engine/text/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>

namespace tessera::jinja {
namespace {

constexpr int kMaxLevels = 100;  // of brackets and operators in each other
constexpr int kMaxDepth = 400;   // of trees; a sum of n terms has depth n

}  // namespace

class ExpressionParser::Level {
 public:
  explicit Level(ExpressionParser& parser) : parser_(parser) {
    if (++parser.level_ > kMaxLevels) {
      throw error_at(parser.tokens_.current().position, "expressions are nested too deeply");
    }
  }
  ~Level() { --parser_.level_; }

 private:
  ExpressionParser& parser_;
};

ExpressionPtr ExpressionParser::make(Kind kind, std::string name) const {
  auto expression = std::make_unique<Expression>();
  expression->kind = kind;
  expression->position = tokens_.current().position;
  expression->name = std::move(name);
  return expression;
}

void ExpressionParser::adopt_depth(Expression& parent, const ExpressionPtr& operand) const {
  if (operand == nullptr) return;
  parent.depth = std::max(parent.depth, operand->depth + 1);
  if (parent.depth > kMaxDepth) throw error_at(parent.position, "this expression is too deep");
}

void ExpressionParser::adopt(Expression& parent, ExpressionPtr operand) const {
  adopt_depth(parent, operand);
  parent.operands.push_back(std::move(operand));
}

ExpressionPtr ExpressionParser::make_binary(Kind kind, std::string name, ExpressionPtr left,
                                            ExpressionPtr right) {
  ExpressionPtr expression = make(kind, std::move(name));
  expression->position = left->position;
  adopt(*expression, std::move(left));
  adopt(*expression, std::move(right));
  return expression;
}

bool ExpressionParser::tuple_ends() const {
  const Token& token = tokens_.current();
  return token.kind == Token::Kind::kOutputEnd || token.kind == Token::Kind::kTagEnd ||
         token.is_operator(")") || token.is_name("recursive");
}

ExpressionPtr ExpressionParser::parse_tuple(bool has_conditions) {
  const auto parse_element = [&] { return has_conditions ? parse_expression() : parse_or(); };
  ExpressionPtr first = parse_element();
  if (!tokens_.current().is_operator(",")) return first;
  ExpressionPtr tuple = make(Kind::kTuple);
  adopt(*tuple, std::move(first));
  while (tokens_.skip_operator(",") && !tuple_ends()) adopt(*tuple, parse_element());
  return tuple;
}

ExpressionPtr ExpressionParser::parse_expression() {
  const Level level(*this);
  ExpressionPtr value = parse_or();
  while (tokens_.current().is_name("if")) {
    ExpressionPtr conditional = make(Kind::kConditional);
    tokens_.take();
    adopt(*conditional, std::move(value));
    adopt(*conditional, parse_or());
    adopt(*conditional, tokens_.skip_name("else") ? parse_expression() : nullptr);
    value = std::move(conditional);
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (tokens_.skip_name("or")) left = make_binary(Kind::kOr, "", std::move(left), parse_and());
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (tokens_.skip_name("and")) {
    left = make_binary(Kind::kAnd, "", std::move(left), parse_not());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!tokens_.current().is_name("not")) return parse_comparison();
  const Level level(*this);
  ExpressionPtr negation = make(Kind::kNot);
  tokens_.take();
  adopt(*negation, parse_not());
  return negation;
}

ExpressionPtr ExpressionParser::parse_comparison() {
  constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  ExpressionPtr first = parse_sum();
  ExpressionPtr comparison = make(Kind::kCompare);
  for (;;) {
    const Token& token = tokens_.current();
    const bool is_symbol =
        token.kind == Token::Kind::kOperator && std::ranges::count(kOperators, token.content) > 0;
    if (is_symbol || token.is_name("in")) {
      comparison->operators.push_back(tokens_.take().content);
    } else if (token.is_name("not") && tokens_.following().is_name("in")) {
      tokens_.take();
      tokens_.take();
      comparison->operators.push_back("not in");
    } else {
      break;
    }
    if (first != nullptr) adopt(*comparison, std::move(first));
    adopt(*comparison, parse_sum());
  }
  return comparison->operators.empty() ? std::move(first) : std::move(comparison);
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  while (tokens_.current().is_operator("+") || tokens_.current().is_operator("-")) {
    std::string name = tokens_.take().content;
    left = make_binary(Kind::kBinary, std::move(name), std::move(left), parse_concatenation());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  ExpressionPtr first = parse_product();
  if (!tokens_.current().is_operator("~")) return first;
  ExpressionPtr joined = make(Kind::kConcatenate);
  adopt(*joined, std::move(first));
  while (tokens_.skip_operator("~")) adopt(*joined, parse_product());
  return joined;
}

ExpressionPtr ExpressionParser::parse_product() {
  constexpr std::string_view kOperators[] = {"*", "/", "//", "%"};
  ExpressionPtr left = parse_power();
  while (tokens_.current().kind == Token::Kind::kOperator &&
         std::ranges::count(kOperators, tokens_.current().content) > 0) {
    std::string name = tokens_.take().content;
    left = make_binary(Kind::kBinary, std::move(name), std::move(left), parse_power());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (tokens_.skip_operator("**")) {
    left = make_binary(Kind::kBinary, "**", std::move(left), parse_unary());
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool has_filters) {
  const Level level(*this);
  ExpressionPtr value;
  if (tokens_.current().is_operator("-") || tokens_.current().is_operator("+")) {
    value = make(tokens_.current().content == "-" ? Kind::kNegate : Kind::kPlus);
    tokens_.take();
    adopt(*value, parse_unary(false));
  } else {
    value = parse_primary();
  }
  value = parse_postfix(std::move(value));
  while (has_filters) {
    if (tokens_.current().is_operator("|")) {
      tokens_.take();
      value = parse_filter(std::move(value));
    } else if (tokens_.skip_name("is")) {
      value = parse_test(std::move(value));
    } else if (tokens_.current().is_operator("(")) {
      value = parse_call(std::move(value));
    } else {
      break;
    }
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_primary() {
  const Token& token = tokens_.current();
  if (token.kind == Token::Kind::kName) return parse_name();
  if (token.kind == Token::Kind::kString) return parse_strings();
  if (token.kind == Token::Kind::kInteger || token.kind == Token::Kind::kFloat) {
    return parse_number();
  }
  if (token.is_operator("(")) return parse_parenthesis();
  if (token.is_operator("[")) return parse_list();
  if (token.is_operator("{")) return parse_dict();
  throw tokens_.unexpected("an expression");
}

ExpressionPtr ExpressionParser::parse_name() {
  ExpressionPtr value = make(Kind::kConstant);
  if (tokens_.skip_name("true") || tokens_.skip_name("True")) {
    value->constant = Value(true);
  } else if (tokens_.skip_name("false") || tokens_.skip_name("False")) {
    value->constant = Value(false);
  } else if (!tokens_.skip_name("none") && !tokens_.skip_name("None")) {
    value->kind = Kind::kName;
    value->name = tokens_.expect_name();
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_strings() {
  ExpressionPtr value = make(Kind::kConstant);
  std::string content;
  while (tokens_.current().kind == Token::Kind::kString) content += tokens_.take().content;
  value->constant = Value::trusted(content);
  return value;
}

ExpressionPtr ExpressionParser::parse_number() {
  ExpressionPtr value = make(Kind::kConstant);
  const Token token = tokens_.take();
  const char* const begin = token.content.data();
  const char* const end = begin + token.content.size();
  std::from_chars_result result;
  if (token.kind == Token::Kind::kInteger) {
    int64_t integer = 0;
    result = std::from_chars(begin, end, integer);
    value->constant = Value(integer);
  } else {
    double number = 0;
    result = std::from_chars(begin, end, number);
    value->constant = Value(number);
  }
  if (result.ec != std::errc() || result.ptr != end) {
    throw error_at(token.position, "this number is out of range");
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_parenthesis() {
  tokens_.expect_operator("(");
  ExpressionPtr value = tokens_.current().is_operator(")") ? make(Kind::kTuple) : parse_tuple();
  tokens_.expect_operator(")");
  return value;
}

ExpressionPtr ExpressionParser::parse_list() {
  ExpressionPtr list = make(Kind::kList);
  tokens_.expect_operator("[");
  while (!tokens_.skip_operator("]")) {
    if (!list->operands.empty()) tokens_.expect_operator(",");
    if (tokens_.skip_operator("]")) break;
    adopt(*list, parse_expression());
  }
  return list;
}

ExpressionPtr ExpressionParser::parse_dict() {
  ExpressionPtr dict = make(Kind::kDict);
  tokens_.expect_operator("{");
  while (!tokens_.skip_operator("}")) {
    if (!dict->operands.empty()) tokens_.expect_operator(",");
    if (tokens_.skip_operator("}")) break;
    adopt(*dict, parse_expression());
    tokens_.expect_operator(":");
    adopt(*dict, parse_expression());
  }
  return dict;
}

Target ExpressionParser::parse_target() {
  const auto parse_one = [this] {
    Target target;
    target.position = tokens_.current().position;
    if (tokens_.current().is_operator("(")) {
      const Level level(*this);
      tokens_.take();
      target = parse_target();
      tokens_.expect_operator(")");
      return target;
    }
    target.name = tokens_.expect_name();
    if (tokens_.skip_operator(".")) target.attribute = tokens_.expect_name();
    return target;
  };
  Target first = parse_one();
  if (!tokens_.current().is_operator(",")) return first;
  Target tuple;
  tuple.position = first.position;
  tuple.elements.push_back(std::move(first));
  while (tokens_.skip_operator(",") && !tokens_.current().is_name("in")) {
    tuple.elements.push_back(parse_one());
  }
  return tuple;
}

}  // namespace tessera::jinja
