#include "model_loaders/generation_config.h"

#include "model_loaders/file_reader.h"
#include "model_loaders/json.h"
#include "model_loaders/token_ids.h"

namespace tessera {
namespace {

// What Hugging Face's library draws answers by and tessera does not, each with a value that changes
// nothing. The most tokens of an answer are not among them: they are the caller's to set.
constexpr const char* kNotComputed = R"({
  "bad_words_ids": [], "begin_suppress_tokens": [], "dola_layers": null,
  "encoder_no_repeat_ngram_size": 0, "encoder_repetition_penalty": 1, "epsilon_cutoff": 0,
  "eta_cutoff": 0, "exponential_decay_length_penalty": null, "force_words_ids": [],
  "guidance_scale": 1, "min_length": 0, "min_new_tokens": 0, "no_repeat_ngram_size": 0,
  "num_beams": 1, "penalty_alpha": 0, "sequence_bias": [], "stop_strings": [],
  "suppress_tokens": [], "top_h": null, "typical_p": 1, "watermarking_config": null})";

void warn_of_what_is_not_computed(const JsonObject& json, std::vector<std::string>& warnings) {
  const JsonObject neutral = JsonObject::parse(kNotComputed, "");
  std::string names;
  for (const std::string& key : neutral.keys()) {
    const bool says_nothing =
        !json.contains(key) || json.is_null(key) || json.has_same(key, neutral);
    if (!says_nothing) names += concat(names.empty() ? "" : ", ", key);
  }
  if (names.empty()) return;
  warnings.push_back(concat(json.path(), ": not supported, answers are drawn without: ", names));
}

}  // namespace

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
  warn_of_what_is_not_computed(json, warnings);
  return config;
}

}  // namespace tessera
