// The body of a batch request: what is asked of the model, and how it is to answer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/batch/request.h"

namespace tessera {

// Reads the fields of the object `body` for request.endpoint. `prefix` stands before their names in
// messages, e.g. "body."; without one the body is a whole line, whose name is passed over. Throws
// Error for a field that is missing, wrong or not understood.
void parse_body(const nlohmann::ordered_json& body, const std::string& prefix,
                BatchRequest& request);

}  // namespace tessera
