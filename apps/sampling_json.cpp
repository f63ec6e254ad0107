#include "apps/sampling_json.h"

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
  object["stop"] = options.stop.empty() ? Json(nullptr) : Json(options.stop);
  object["ignore_eos"] = options.ignore_eos;
  return object;
}

}  // namespace tessera
