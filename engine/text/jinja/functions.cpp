// Functions that every template can call.
#include <ctime>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/printing.h"
#include "model_loaders/printable.h"

namespace tessera::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;

Value raise_exception(Call& call) {
  const auto bound = call.bind_required({"message"}, 1, 0);
  throw Error(concat("the chat template refuses this conversation: ",
                     printable(printed(*bound[0], call.runtime).bytes())));
}

// Python's local time has no zone, so that %z and %Z are "".
std::string without_zone(const std::string& format, const Call& call) {
  std::string kept;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      kept += format[i];
      continue;
    }
    const char kind = format[++i];
    if (kind == 'f' || kind == ':') throw call.error(concat("%", kind, " is not supported"));
    if (kind != 'z' && kind != 'Z') kept += {'%', kind};
  }
  return kept;
}

// The local time.
Value strftime_now(Call& call) {
  const std::string format =
      without_zone(call.text(*call.bind_required({"format"}, 1, 0)[0]).bytes(), call);
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  char buffer[256];
  const size_t size = std::strftime(buffer, sizeof(buffer), format.c_str(), &local);
  if (size == 0 && !format.empty()) throw call.error("this date is too long");
  return Value::trusted({buffer, size});
}

void add_dict(const Value& value, Call& call, Dict& dict) {
  if (value.as_dict() == nullptr) throw call.error(concat("needs a dict, got ", value.kind()));
  for (const auto& [key, element] : value.as_dict()->entries()) dict.set(key, element);
}

Dict dict_of_arguments(Call& call) {
  Dict dict;
  if (call.arguments.size() > 1) throw call.error("has too many arguments");
  for (const Value& value : call.arguments) add_dict(value, call, dict);
  for (const auto& [name, value] : call.named) dict.set(Text(name, Origin::kTemplate), value);
  return dict;
}

Value make_dict(Call& call) { return call.runtime.make(dict_of_arguments(call)); }

Value make_namespace(Call& call) {
  auto made = std::make_shared<Namespace>();
  const Dict dict = dict_of_arguments(call);
  call.runtime.count_elements(4 + 3 * dict.entries().size());
  for (const auto& [key, value] : dict.entries()) {
    if (const Text* const name = key.as_text()) made->values[name->bytes()] = value;
  }
  return Value(std::move(made));
}

Value make_range(Call& call) {
  const auto bound = call.bind_required({"start", "stop", "step"}, 1, 0);
  int64_t first = call.integer(*bound[0]);
  int64_t end = bound[1] == nullptr ? std::exchange(first, 0) : call.integer(*bound[1]);
  const int64_t step = bound[2] == nullptr ? 1 : call.integer(*bound[2]);
  if (step == 0) throw call.error("the step is 0");
  std::vector<Value> elements;
  while (step > 0 ? first < end : first > end) {
    if (static_cast<int64_t>(elements.size()) == kMaxRange) {
      throw call.error(concat("gives more than ", kMaxRange, " numbers"));
    }
    elements.emplace_back(first);
    if (__builtin_add_overflow(first, step, &first)) break;
  }
  return call.runtime.make(std::move(elements), List::Form::kRange);
}

constexpr Builtin kFunctions[] = {{"raise_exception", raise_exception},
                                  {"strftime_now", strftime_now},
                                  {"namespace", make_namespace},
                                  {"dict", make_dict},
                                  {"range", make_range}};

}  // namespace

Function find_function(std::string_view name) { return find_builtin(kFunctions, name); }

}  // namespace tessera::jinja
