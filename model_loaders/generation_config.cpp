#include "model_loaders/generation_config.h"

#include "model_loaders/file_reader.h"
#include "model_loaders/json.h"
#include "model_loaders/token_ids.h"

namespace tessera {

GenerationConfig read_generation_config(const std::string& path, int64_t vocab_size,
                                        std::vector<std::string>& warnings) {
  GenerationConfig config;
  if (!file_exists(path)) return config;
  const JsonObject json = JsonObject::read(path);
  config.eos_token_ids = find_token_ids(json, "eos_token_id", vocab_size, warnings);
  config.bos_token_id = find_token_id(json, "bos_token_id", vocab_size, warnings);
  config.do_sample = json.find_bool("do_sample");
  config.temperature = json.find_number("temperature", kTemperatureLimits);
  config.top_k = json.find_integer("top_k", kTopKLimits);
  config.top_p = json.find_number("top_p", kTopPLimits);
  config.min_p = json.find_number("min_p", kMinPLimits);
  config.repetition_penalty = json.find_number("repetition_penalty", kRepetitionPenaltyLimits);
  return config;
}

}  // namespace tessera
