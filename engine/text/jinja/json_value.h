// JSON of requests, such as tool schemas, and of settings as values of a template.
#pragma once

#include <nlohmann/json.hpp>

#include "engine/text/jinja/value.h"

namespace tessera::jinja {

// Every text in it is of that origin, keys too, which stay in their order. Throws Error for
// integers that 64 bits do not hold and for what is nested deeper than values may be.
Value value_of_json(const nlohmann::ordered_json& json, Origin origin = Origin::kData);

}  // namespace tessera::jinja
