#include "engine/text/jinja/parser.h"

#include <algorithm>
#include <initializer_list>

#include "engine/text/jinja/expression_parser.h"
#include "model_loaders/printable.h"

namespace tessera::jinja {
namespace {

constexpr int kMaxBlocks = 100;  // in each other

using Kind = Statement::Kind;

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Statements parse() { return parse_body({}); }

 private:
  Statement make(Kind kind) const {
    Statement statement;
    statement.kind = kind;
    statement.position = tokens_.current().position;
    return statement;
  }

  void end_tag() { tokens_.expect(Token::Kind::kTagEnd, "'%}'"); }

  // Statements up to a tag whose name is one of `ends`, which is left to the caller; without any,
  // up to the end of the template.
  Statements parse_body(std::initializer_list<std::string_view> ends) {
    const SourcePosition begin = tokens_.current().position;
    if (++blocks_ > kMaxBlocks) throw error_at(begin, "blocks are nested too deeply");
    Statements statements;
    for (;;) {
      if (tokens_.current().kind == Token::Kind::kEnd) {
        if (ends.size() == 0) break;
        throw tokens_.unexpected(concat("{% ", *(ends.end() - 1), " %}"));
      }
      if (tokens_.current().kind == Token::Kind::kTagBegin) {
        tokens_.take();
        const Token& name = tokens_.current();
        if (std::ranges::any_of(ends, [&](auto end) { return name.is_name(end); })) break;
        statements.push_back(parse_tag());
      } else {
        statements.push_back(parse_text_or_output());
      }
    }
    --blocks_;
    return statements;
  }

  // The same, past the tag of that one name.
  Statements parse_block(std::string_view end) {
    end_tag();
    Statements body = parse_body({end});
    tokens_.take();
    return body;
  }

  Statement parse_text_or_output() {
    if (tokens_.current().kind == Token::Kind::kText) {
      Statement text = make(Kind::kText);
      text.text = Value::trusted(tokens_.take().content);
      return text;
    }
    Statement output = make(Kind::kOutput);
    tokens_.take();
    output.expression = expressions_.parse_tuple();
    tokens_.expect(Token::Kind::kOutputEnd, "'}}'");
    return output;
  }

  Statement parse_tag() {
    struct Tag {
      std::string_view name;
      Statement (Parser::*parse)();
    };
    constexpr Tag kTags[] = {{"if", &Parser::parse_if},
                             {"for", &Parser::parse_for},
                             {"set", &Parser::parse_set},
                             {"macro", &Parser::parse_macro},
                             {"call", &Parser::parse_call_block},
                             {"filter", &Parser::parse_filter_block},
                             {"generation", &Parser::parse_generation},
                             {"break", &Parser::parse_break},
                             {"continue", &Parser::parse_continue}};
    const Token& token = tokens_.current();
    const auto tag = std::ranges::find_if(
        kTags, [&](const Tag& candidate) { return token.is_name(candidate.name); });
    if (tag == std::end(kTags)) {
      throw error_at(token.position, concat("unknown tag '", printable(token.content), "'"));
    }
    Statement statement = (this->*tag->parse)();
    end_tag();
    return statement;
  }

  // Also from "elif" on; at the end of the last tag.
  Statement parse_if() {
    Statement statement = make(Kind::kIf);
    tokens_.take();
    statement.expression = expressions_.parse_without_condition();
    end_tag();
    statement.body = parse_body({"elif", "else", "endif"});
    if (tokens_.current().is_name("elif")) {
      // Each elif is an if in the else of the one before.
      if (++blocks_ > kMaxBlocks) {
        throw error_at(statement.position, "blocks are nested too deeply");
      }
      statement.otherwise.push_back(parse_if());
      --blocks_;
    } else if (tokens_.take().is_name("else")) {
      statement.otherwise = parse_block("endif");
    }
    return statement;
  }

  Statement parse_for() {
    Statement statement = make(Kind::kFor);
    tokens_.take();
    statement.target = expressions_.parse_target();
    if (!tokens_.skip_name("in")) throw tokens_.unexpected("'in'");
    statement.expression = expressions_.parse_without_condition();
    if (tokens_.skip_name("if")) statement.condition = expressions_.parse_expression();
    if (tokens_.current().is_name("recursive")) {
      throw error_at(statement.position, "recursive loops are not supported");
    }
    end_tag();
    ++loops_;
    statement.body = parse_body({"else", "endfor"});
    --loops_;
    if (tokens_.take().is_name("else")) statement.otherwise = parse_block("endfor");
    return statement;
  }

  Statement parse_set() {
    Statement statement = make(Kind::kSet);
    tokens_.take();
    statement.target = expressions_.parse_target();
    if (tokens_.skip_operator("=")) {
      statement.expression = expressions_.parse_tuple();
      return statement;
    }
    statement.kind = Kind::kSetBlock;
    if (tokens_.skip_operator("|")) statement.expression = expressions_.parse_filters(nullptr);
    statement.body = parse_block("endset");
    return statement;
  }

  // "(a, b=1)"
  std::vector<Parameter> parse_parameters() {
    std::vector<Parameter> parameters;
    tokens_.expect_operator("(");
    while (!tokens_.skip_operator(")")) {
      if (!parameters.empty()) tokens_.expect_operator(",");
      if (tokens_.skip_operator(")")) break;
      parameters.push_back({tokens_.expect_name(), nullptr});
      if (tokens_.skip_operator("=")) {
        parameters.back().default_value = expressions_.parse_expression();
      } else if (parameters.size() > 1 && (parameters.end() - 2)->default_value != nullptr) {
        throw tokens_.unexpected("'=', as this parameter follows one with a default");
      }
    }
    return parameters;
  }

  // The body of a macro is not within the loop around it.
  Statements parse_macro_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Statements body = parse_block(end);
    loops_ = loops;
    return body;
  }

  Statement parse_macro() {
    Statement statement = make(Kind::kMacro);
    tokens_.take();
    statement.name = tokens_.expect_name();
    statement.parameters = parse_parameters();
    statement.body = parse_macro_body("endmacro");
    return statement;
  }

  Statement parse_call_block() {
    Statement statement = make(Kind::kCallBlock);
    tokens_.take();
    statement.name = "caller";
    if (tokens_.current().is_operator("(")) statement.parameters = parse_parameters();
    statement.expression = expressions_.parse_expression();
    if (statement.expression->kind != Expression::Kind::kCall) {
      throw error_at(statement.position, "a call block needs a call");
    }
    statement.body = parse_macro_body("endcall");
    return statement;
  }

  Statement parse_filter_block() {
    Statement statement = make(Kind::kFilterBlock);
    tokens_.take();
    statement.expression = expressions_.parse_filters(nullptr);
    statement.body = parse_block("endfilter");
    return statement;
  }

  // What training learns from; in a chat only its text counts. Its names are its own, as those of
  // a macro.
  Statement parse_generation() {
    Statement statement = make(Kind::kGeneration);
    tokens_.take();
    statement.body = parse_macro_body("endgeneration");
    return statement;
  }

  Statement parse_jump(Kind kind) {
    Statement statement = make(kind);
    if (loops_ == 0) throw error_at(statement.position, "this is outside of a loop");
    tokens_.take();
    return statement;
  }
  Statement parse_break() { return parse_jump(Kind::kBreak); }
  Statement parse_continue() { return parse_jump(Kind::kContinue); }

  TokenStream tokens_;
  ExpressionParser expressions_{tokens_};
  int blocks_ = 0;
  int loops_ = 0;
};

}  // namespace

Statements parse_template(std::string_view source) {
  return Parser(tokenize_template(source)).parse();
}

}  // namespace tessera::jinja
