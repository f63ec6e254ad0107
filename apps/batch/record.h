// The lines of a batch output file, in the form of OpenAI's batch API.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/batch/in_flight.h"
#include "apps/batch/input.h"
#include "engine/engine.h"

namespace tessera {

// What every answer says of its request.
struct RecordHead {
  const BatchItem& item;
  const std::string& custom_id;  // "" when it has none
};

// A request that has just been finished, with one result for each choice. `model` is the name to
// report.
nlohmann::ordered_json answer_record(const FinishedRequest& finished, const std::string& model,
                                     const Tokenizer& tokenizer);

// A request that could not be answered: {"code", "message", "line"} under "error".
nlohmann::ordered_json error_record(const RecordHead& head, const std::string& code,
                                    const std::string& message);

}  // namespace tessera
