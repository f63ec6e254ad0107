// map, select, reject, selectattr, rejectattr: filters that apply others.
#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/operators.h"

namespace tessera::jinja {
namespace {

// Calls `function`, named by the argument at `place`, with the arguments behind it.
Value apply_named(Call& call, Function function, size_t place, const Value& subject) {
  Call inner{call.runtime, call.text(call.arguments[place]).bytes(), {subject}, call.named};
  inner.arguments.insert(inner.arguments.end(),
                         call.arguments.begin() + static_cast<ptrdiff_t>(place) + 1,
                         call.arguments.end());
  call.runtime.count_steps(1 + inner.arguments.size());
  return function(inner);
}

Function named_function(Call& call, size_t place, Function (*find)(std::string_view),
                        std::string_view what) {
  const std::string& name = call.text(call.arguments[place]).bytes();
  const Function function = find(name);
  if (function == nullptr) throw call.error(concat("there is no ", what, " '", name, "'"));
  return function;
}

// These filters take any false value for an empty list.
std::vector<Value> subject_elements_or_none(Call& call) {
  if (!call.subject().is_true()) return {};
  return elements_of(call.subject(), call.runtime);
}

Value filter_map(Call& call) {
  std::vector<Value> elements = subject_elements_or_none(call);
  if (call.arguments.size() == 1) {
    const auto bound = call.bind({"attribute", "default"});
    if (bound[0] == nullptr) throw call.error("needs a filter or an attribute");
    for (Value& element : elements) {
      element = attribute_path(element, *bound[0], call.runtime);
      if (element.is_undefined() && bound[1] != nullptr) element = *bound[1];
    }
    return make_lazy(std::move(elements), call);
  }
  const Function function = named_function(call, 1, find_filter, "filter");
  for (Value& element : elements) element = apply_named(call, function, 1, element);
  return make_lazy(std::move(elements), call);
}

// Elements of which, or of whose attribute, a test holds; without a test those that are true.
template <bool kKeeps, bool kOfAttribute>
Value filter_select(Call& call) {
  const size_t place = kOfAttribute ? 2 : 1;
  if (call.arguments.size() < place) throw call.error("needs an attribute");
  const bool has_test = call.arguments.size() > place;
  const Function test = has_test ? named_function(call, place, find_test, "test") : nullptr;
  std::vector<Value> kept;
  for (const Value& element : subject_elements_or_none(call)) {
    const Value value =
        kOfAttribute ? attribute_path(element, call.arguments[1], call.runtime) : element;
    const bool holds = has_test ? apply_named(call, test, place, value).is_true() : value.is_true();
    if (holds == kKeeps) kept.push_back(element);
  }
  return make_lazy(std::move(kept), call);
}

constexpr Builtin kSelectingFilters[] = {{"map", filter_map},
                                         {"select", filter_select<true, false>},
                                         {"reject", filter_select<false, false>},
                                         {"selectattr", filter_select<true, true>},
                                         {"rejectattr", filter_select<false, true>}};

}  // namespace

Value make_lazy(std::vector<Value> elements, Call& call) {
  if (Iterable* const source = call.subject().as_iterable())
    source->is_open = source->is_iterator();
  return call.runtime.make_iterable(Iterable::Kind::kIterator, std::move(elements));
}

Value attribute_path(const Value& value, const Value& path, Runtime& runtime) {
  if (path.as_text() == nullptr) {
    return item_of(value, path, runtime).value_or(Value::undefined("attribute"));
  }
  Value found = value;
  std::string_view rest = path.as_text()->bytes();
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view name = rest.substr(0, dot);
    if (found.is_undefined()) {
      throw runtime.error(concat("'", *found.as_undefined()->name, "' is undefined"));
    }
    const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == name.npos;
    const Value key = is_number && name.size() < 10 ? Value(int64_t{std::stoi(std::string(name))})
                                                    : Value::data(name);
    found = item_of(found, key, runtime).value_or(Value::undefined(name));
    if (dot == std::string_view::npos) return found;
    rest.remove_prefix(dot + 1);
  }
}

Function find_selecting_filter(std::string_view name) {
  return find_builtin(kSelectingFilters, name);
}

Function find_filter(std::string_view name) {
  if (const Function function = find_text_filter(name)) return function;
  if (const Function function = find_list_filter(name)) return function;
  return find_selecting_filter(name);
}

}  // namespace tessera::jinja
