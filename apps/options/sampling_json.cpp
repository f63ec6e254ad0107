#include "apps/options/sampling_json.h"

namespace tessera {

using Json = nlohmann::json;

Json sampling_json(const SamplingOptions& options) {
  Json object;
  for (const SamplingField& field : sampling_fields()) {
    Json& value = object[std::string(field.name)];
    std::visit(
        [&](auto member) {
          if (options.*member) value = *(options.*member);
        },
        field.member);
  }
  object["stop"] = options.stop ? Json(*options.stop) : Json(nullptr);
  object["ignore_eos"] = options.ignore_eos.value_or(false);
  return object;
}

nlohmann::ordered_json sampling_json(const SamplingParams& params) {
  return {{"temperature", params.temperature},
          {"top_k", params.top_k},
          {"top_p", params.top_p},
          {"min_p", params.min_p},
          {"repetition_penalty", params.repetition_penalty},
          {"presence_penalty", params.presence_penalty},
          {"frequency_penalty", params.frequency_penalty},
          {"repeat_last_n", params.penalty_window},
          {"max_tokens", params.max_tokens},
          {"min_tokens", params.min_tokens},
          {"stop", params.stop},
          {"ignore_eos", params.ignore_eos}};
}

}  // namespace tessera
