// A parsed template: expressions and statements.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/text/jinja/source_position.h"
#include "engine/text/jinja/value.h"

namespace tessera::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind : uint8_t {
    kConstant,
    kName,       // name
    kList,       // operands
    kTuple,      // operands
    kDict,       // operands: key, value, key, value, ...
    kAttribute,  // operands[0].name
    kItem,       // operands[0][operands[1]]
    kSlice,      // operands[0][operands[1]:operands[2]:operands[3]], null where left out
    kCall,       // operands[0](operands[1], ..., named)
    kFilter,     // operands[0] | name(operands[1], ..., named)
    kTest,       // operands[0] is name(operands[1], ..., named)
    kNot,
    kNegate,
    kPlus,
    kBinary,       // operands[0] name operands[1]: + - * / // % **
    kCompare,      // operands, between them operators
    kConcatenate,  // operands joined by ~
    kAnd,
    kOr,
    kConditional,  // operands[0] if operands[1] else operands[2], which may be null
  };

  Kind kind = Kind::kConstant;
  SourcePosition position;
  int depth = 1;  // of this tree
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> operands;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> operators;  // == != < <= > >= in, not in
  // Of calls: the arguments in a *sequence and in a **dict, or null.
  ExpressionPtr splat;
  ExpressionPtr named_splat;
};

// What `set` and `for` assign to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;         // of the namespace `name`; else ""
  std::vector<Target> elements;  // of a tuple; else empty
  SourcePosition position;
};

struct Parameter {
  std::string name;
  ExpressionPtr default_value;  // or null
};

struct Statement;
using Statements = std::vector<Statement>;

struct Statement {
  enum class Kind : uint8_t {
    kText,         // text
    kOutput,       // expression
    kIf,           // if expression: body, else: otherwise
    kFor,          // for target in expression if condition: body, else: otherwise
    kSet,          // target = expression
    kSetBlock,     // target = body, through the filters of expression unless null
    kMacro,        // name(parameters): body
    kCallBlock,    // expression with caller(parameters) = body
    kFilterBlock,  // body through the filters of expression
    kGeneration,   // body
    kBreak,
    kContinue,
  };

  Kind kind = Kind::kText;
  SourcePosition position;
  Value text;
  ExpressionPtr expression;
  ExpressionPtr condition;
  Target target;
  std::string name;
  std::vector<Parameter> parameters;
  Statements body;
  Statements otherwise;
};

}  // namespace tessera::jinja
