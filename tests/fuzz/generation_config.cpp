// generation_config.json.
#include "model_loaders/generation_config.h"

#include <algorithm>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/oracle.h"

namespace tessera {
namespace {

constexpr int64_t kVocabSize = 1000;

template <typename T>
void require_in(const std::optional<T>& value, T low, T high, const std::string& name) {
  require(!value || (*value >= low && *value <= high), name + " is in its range");
}

void read(std::string_view bytes) {
  static const MemoryFolder file("generation_config.json");
  file.replace(bytes);
  std::vector<std::string> warnings;
  const GenerationConfig config = read_generation_config(file.path(), kVocabSize, warnings);
  for (const std::string& warning : warnings) require_readable(warning);
  require(std::ranges::all_of(config.eos_token_ids,
                              [](int64_t id) { return id >= 0 && id < kVocabSize; }),
          "token ids are in the vocabulary");
  require_in<int64_t>(config.bos_token_id, 0, kVocabSize - 1, "bos_token_id");
  require_in(config.temperature, 0.0, 100.0, "temperature");
  require_in<int64_t>(config.top_k, 0, int64_t{1} << 30, "top_k");
  require_in(config.top_p, 0.0, 1.0, "top_p");
  require_in(config.min_p, 0.0, 1.0, "min_p");
  require_in(config.repetition_penalty, 0.0, 100.0, "repetition_penalty");
}

std::vector<std::string> seeds() {
  return {
      R"({"bos_token_id": 1, "eos_token_id": [2, 3], "do_sample": true, "temperature": 0.6,
          "top_p": 0.9, "top_k": 50, "min_p": 0.05, "repetition_penalty": 1.1,
          "transformers_version": "4.45.0"})",
      R"({"eos_token_id": 2, "temperature": null})",
      R"({"temperature": 1e999})",
      R"({"top_p": -0.0, "min_p": 1e-400})",
      R"({"top_k": 18446744073709551615})",
      R"({"eos_token_id": [[1]]})",
  };
}

}  // namespace

FuzzTarget generation_config_target() {
  return {"generation_config",
          read,
          seeds(),
          {"\"eos_token_id\"", "\"bos_token_id\"", "\"do_sample\"", "\"temperature\"", "\"top_k\"",
           "\"top_p\"", "\"min_p\"", "\"repetition_penalty\"", "null", "true", "1e308", "-1e-400",
           "18446744073709551615", "\\u009b"}};
}

}  // namespace tessera
