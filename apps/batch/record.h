// The lines of a batch output file, in the form of OpenAI's batch API.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/batch/input.h"
#include "engine/engine.h"

namespace tessera {

// A finished request. `model` is the name to report, `text` that of the result in its parts.
nlohmann::ordered_json answer_record(const BatchItem& item, const std::string& model,
                                     const GenerationResult& result, const ThoughtAndAnswer& text);

// A request that could not be answered: {"code", "message", "line"} under "error".
nlohmann::ordered_json error_record(const BatchItem& item, const std::string& code,
                                    const std::string& message);

}  // namespace tessera
