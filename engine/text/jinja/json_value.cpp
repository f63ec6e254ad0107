#include "engine/text/jinja/json_value.h"

#include "kernels/tensor/check.h"

namespace tessera::jinja {

Value value_of_json(const nlohmann::ordered_json& json, Origin origin) {
  if (json.is_null()) return Value();
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_string()) return Value(Text(json.get_ref<const std::string&>(), origin));
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_number()) {
    CHECK(!json.is_number_unsigned() || json.get<uint64_t>() <= INT64_MAX, "the integer ",
          json.dump(), " does not fit in 64 bits with a sign");
    return Value(json.get<int64_t>());
  }
  if (json.is_array()) {
    std::vector<Value> elements;
    for (const auto& element : json) elements.push_back(value_of_json(element, origin));
    return Value(List(std::move(elements)));
  }
  Dict dict;
  for (const auto& [key, element] : json.items()) {
    dict.set(Text(key, origin), value_of_json(element, origin));
  }
  return Value(std::move(dict));
}

}  // namespace tessera::jinja
