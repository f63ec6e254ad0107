#include <cmath>

#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/text_operations.h"

namespace tessera::jinja {
namespace {

int64_t floor_quotient(int64_t left, int64_t right) {
  const int64_t quotient = left / right;
  return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

[[noreturn]] void refuse_operator(std::string_view name, const Value& left, const Value& right,
                                  const Runtime& runtime) {
  for (const Value* const value : {&left, &right}) {
    if (const Undefined* const undefined = value->as_undefined()) {
      throw runtime.error(concat("'", *undefined->name, "' is undefined"));
    }
  }
  throw runtime.error(concat("'", name, "' cannot join ", left.kind(), " and ", right.kind()));
}

Value float_power(double base, double exponent, Runtime& runtime) {
  if (base == 0 && exponent < 0) throw runtime.error("division by zero");
  const double power = std::pow(base, exponent);
  const bool is_of_finite = std::isfinite(base) && std::isfinite(exponent);
  if (is_of_finite && std::isnan(power)) throw runtime.error("this power is no real number");
  if (is_of_finite && std::isinf(power)) throw runtime.error("this power is too large");
  return Value(power);
}

Value integer_power(int64_t base, int64_t exponent, Runtime& runtime) {
  if (exponent < 0) {
    return float_power(static_cast<double>(base), static_cast<double>(exponent), runtime);
  }
  int64_t power = 1;
  for (int64_t i = 0; i < exponent && power != 0 && base != 1; ++i) {
    if (base == -1) return Value(exponent % 2 == 0 ? int64_t{1} : int64_t{-1});
    if (__builtin_mul_overflow(power, base, &power)) throw runtime.error("integer overflow");
  }
  return Value(power);
}

Value apply_to_integers(std::string_view name, int64_t left, int64_t right, Runtime& runtime) {
  int64_t result = 0;
  bool overflows = false;
  if (name == "+") overflows = __builtin_add_overflow(left, right, &result);
  if (name == "-") overflows = __builtin_sub_overflow(left, right, &result);
  if (name == "*") overflows = __builtin_mul_overflow(left, right, &result);
  if (name == "**") return integer_power(left, right, runtime);
  if (name == "//" || name == "%" || name == "/") {
    if (right == 0) throw runtime.error("division by zero");
    if (name == "/") return Value(static_cast<double>(left) / static_cast<double>(right));
    overflows = left == INT64_MIN && right == -1;
    if (!overflows) {
      const int64_t quotient = floor_quotient(left, right);
      result = name == "//" ? quotient : left - quotient * right;
    }
  }
  if (overflows) throw runtime.error("integer overflow");
  return Value(result);
}

Value apply_to_floats(std::string_view name, double left, double right, Runtime& runtime) {
  if (name == "+") return Value(left + right);
  if (name == "-") return Value(left - right);
  if (name == "*") return Value(left * right);
  if (name == "**") return float_power(left, right, runtime);
  if (right == 0) throw runtime.error("division by zero");
  if (name == "/") return Value(left / right);
  double remainder = std::fmod(left, right);
  double quotient = (left - remainder) / right;
  if (remainder != 0 && (remainder < 0) != (right < 0)) {
    remainder += right;
    quotient -= 1;
  }
  if (name == "%") return Value(remainder == 0 ? std::copysign(0.0, right) : remainder);
  if (quotient == 0) return Value(std::copysign(0.0, left / right));
  // Nearly an integer already, but for what the division rounded.
  return Value(quotient - std::floor(quotient) > 0.5 ? std::ceil(quotient) : std::floor(quotient));
}

Value repeated(const Value& value, int64_t times, Runtime& runtime) {
  const auto count = static_cast<uint64_t>(std::max<int64_t>(times, 0));
  if (const Text* const text = value.as_text()) {
    if (text->empty() || count == 0) return Value(Text());
    runtime.count_text(std::min<uint64_t>(count, UINT32_MAX) * text->size());
    Text result;
    if (text->is_markup()) result.set_markup();
    for (uint64_t i = 0; i < count; ++i) result.append(*text);
    return Value(std::move(result));
  }
  const std::vector<Value>& elements = value.as_list()->elements();
  std::vector<Value> result;
  if (!elements.empty()) {
    runtime.count_elements(std::min<uint64_t>(count, UINT32_MAX) * elements.size());
    for (uint64_t i = 0; i < count; ++i) {
      result.insert(result.end(), elements.begin(), elements.end());
    }
  }
  return runtime.make(std::move(result), value.as_list()->form());
}

// Of texts, and of lists.
std::optional<Value> joined(const Value& left, const Value& right, Runtime& runtime) {
  if (left.as_text() != nullptr && right.as_text() != nullptr) {
    runtime.count_text(left.as_text()->size() + right.as_text()->size());
    Text text = *left.as_text();
    join(*right.as_text(), text, runtime);
    return runtime.make(std::move(text));
  }
  const List* const first = left.as_list();
  const List* const second = right.as_list();
  const bool has_both = first != nullptr && second != nullptr;
  if (!has_both || first->form() != second->form() || first->is_range()) return std::nullopt;
  runtime.count_elements(first->elements().size() + second->elements().size());
  std::vector<Value> elements = first->elements();
  elements.insert(elements.end(), second->elements().begin(), second->elements().end());
  return runtime.make(std::move(elements), first->form());
}

bool is_repeatable(const Value& value) {
  return value.as_text() != nullptr || (value.as_list() != nullptr && !value.as_list()->is_range());
}

}  // namespace

Value apply_binary(std::string_view name, const Value& left, const Value& right, Runtime& runtime) {
  const auto left_integer = left.integer_value();
  const auto right_integer = right.integer_value();
  if (left_integer && right_integer) {
    return apply_to_integers(name, *left_integer, *right_integer, runtime);
  }
  if (left.number() && right.number()) {
    return apply_to_floats(name, *left.number(), *right.number(), runtime);
  }
  if (name == "%" && left.as_text() != nullptr) return format_text(*left.as_text(), right, runtime);
  if (name == "*" && is_repeatable(left) && right_integer) {
    return repeated(left, *right_integer, runtime);
  }
  if (name == "*" && left_integer && is_repeatable(right)) {
    return repeated(right, *left_integer, runtime);
  }
  if (name == "+") {
    if (auto result = joined(left, right, runtime)) return *result;
  }
  refuse_operator(name, left, right, runtime);
}

Value negated(const Value& value, Runtime& runtime) {
  if (const auto integer = value.integer_value()) {
    return apply_to_integers("-", 0, *integer, runtime);
  }
  if (const double* const number = value.as_float()) return Value(-*number);
  throw runtime.error(concat("'-' cannot stand before ", value.kind()));
}

}  // namespace tessera::jinja
