// The lines of a batch output file, in the form of OpenAI's batch API.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "apps/answer/overflow.h"
#include "apps/batch/input.h"
#include "engine/engine.h"

namespace tessera {

// What every answer says of its request.
struct RecordHead {
  const BatchItem& item;
  const std::string& custom_id;  // "" when it has none
};

// A finished request with one result for each choice. `model` is the name to report; `start`:
// how the answer of a chat begins.
nlohmann::ordered_json answer_record(const RecordHead& head, Endpoint endpoint,
                                     const std::string& model,
                                     std::span<const GenerationResult> results,
                                     const ThinkingStart& start);

// Adds how many tokens of the prompt were left out, beside those that were cached.
void add_left_out(const LeftOut& left_out, nlohmann::ordered_json& record);

// A request that could not be answered: {"code", "message", "line"} under "error".
nlohmann::ordered_json error_record(const RecordHead& head, const std::string& code,
                                    const std::string& message);

}  // namespace tessera
