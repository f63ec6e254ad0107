// The config.json of models that people download, written down from what their authors publish:
// read without a key that is not understood, to as many parameters as the models have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model_loaders/hf_config.h"
#include "model_loaders/weight_specs.h"
#include "tests/source_folder.h"

namespace tessera {
namespace {

std::filesystem::path configs_folder() {
  return source_folder() / "tests" / "model_loaders" / "data" / "configs";
}

struct RealConfig {
  const char* name;        // of the file, without .json
  const char* model_type;  // of the language model
  int64_t num_parameters;  // of the language model, as transformers counts them; tied ones once
  int64_t num_layers;
  int64_t num_windows = 0;    // layers with a window that is shorter than the longest context
  int64_t num_unrotated = 0;  // layers without RoPE
};

void PrintTo(const RealConfig& config, std::ostream* stream) { *stream << config.name; }

constexpr RealConfig kConfigs[] = {
    {"DeepSeek-R1-0528-Qwen3-8B", "qwen3", 8'190'735'360, 36},
    {"DeepSeek-R1-Distill-Llama-8B", "llama", 8'030'261'248, 32},
    {"DeepSeek-R1-Distill-Qwen-7B", "qwen2", 7'615'616'512, 28},
    {"EXAONE-4.0-1.2B", "exaone4", 1'279'391'488, 30},
    {"EXAONE-4.0-32B", "exaone4", 32'003'216'384, 64, 48, 16},
    {"Falcon3-7B-Instruct", "llama", 7'455'550'464, 28},
    {"GLM-4-9B-0414", "glm4", 9'400'279'040, 40},
    {"Llama-3.1-8B-Instruct", "llama", 8'030'261'248, 32},
    {"Ministral-3-8B-Instruct-2512", "ministral3", 8'489'553'920, 34},
    {"Mistral-Nemo-Instruct-2407", "mistral", 12'247'782'400, 40},
    {"Mistral-Small-3.1-24B-Instruct-2503", "mistral", 23'572'403'200, 40},
    {"OLMo-2-1124-7B-Instruct", "olmo2", 7'298'617'344, 32},
    {"Olmo-3-7B-Instruct", "olmo3", 7'298'011'136, 32, 24},
    {"Phi-3.5-mini-instruct", "phi3", 3'821'079'552, 32},
    {"Phi-4-mini-instruct", "phi3", 3'836'021'760, 32},
    {"Qwen2.5-7B-Instruct", "qwen2", 7'615'616'512, 28},
    {"Qwen3-0.6B", "qwen3", 596'049'920, 28},
    {"Qwen3-8B", "qwen3", 8'190'735'360, 36},
    {"Seed-OSS-36B-Instruct", "seed_oss", 36'151'104'512, 64},
    {"SmolLM2-1.7B-Instruct", "llama", 1'711'376'384, 24},
    {"SmolLM3-3B", "smollm3", 3'075'098'624, 36, 0, 9},
    {"c4ai-command-r-08-2024", "cohere", 32'296'476'672, 40},
    {"c4ai-command-r-plus", "cohere", 103'810'674'688, 64},
    {"c4ai-command-r7b-12-2024", "cohere2", 8'028'033'024, 32, 24, 8},
    {"gemma-2-9b-it", "gemma2", 9'241'705'984, 42, 21},
    {"gemma-3-1b-it", "gemma3_text", 999'885'952, 26, 22},
    {"gemma-3-270m-it", "gemma3_text", 268'098'176, 18, 15},
    {"gemma-3-4b-it", "gemma3_text", 3'880'263'168, 34, 29},
    {"glm-4-9b-chat-hf", "glm", 9'399'951'360, 40},
    {"granite-3.3-8b-instruct", "granite", 8'170'864'640, 40},
    {"phi-4", "phi3", 14'659'507'200, 40},
};

int64_t count_parameters(const ModelConfig& config) {
  int64_t count = 0;
  for (const WeightSpec& spec : weight_specs(config)) count += spec.shape.num_elements();
  return count;
}

class RealConfigTest : public testing::TestWithParam<RealConfig> {};

TEST_P(RealConfigTest, IsUnderstood) {
  const RealConfig& expected = GetParam();
  const std::string path = configs_folder() / concat(expected.name, ".json");
  std::vector<std::string> warnings;
  const ModelConfig config = read_hf_config(JsonObject::read(path), false, warnings);
  EXPECT_THAT(warnings, testing::IsEmpty());
  EXPECT_EQ(config.model_type, expected.model_type);
  EXPECT_EQ(config.num_layers, expected.num_layers);
  EXPECT_EQ(count_parameters(config), expected.num_parameters);
  const auto has_window = [&](const LayerSpec& layer) {
    return layer.sliding_window > 0 && layer.sliding_window < config.max_position_embeddings;
  };
  EXPECT_EQ(std::ranges::count_if(config.block.layers, has_window), expected.num_windows);
  const auto is_unrotated = [](const LayerSpec& layer) { return !layer.rope_table; };
  EXPECT_EQ(std::ranges::count_if(config.block.layers, is_unrotated), expected.num_unrotated);
}

INSTANTIATE_TEST_SUITE_P(Models, RealConfigTest, testing::ValuesIn(kConfigs),
                         [](const auto& param) {
                           std::string name = param.param.name;
                           std::ranges::replace_if(
                               name, [](char c) { return !isalnum(c); }, '_');
                           return name;
                         });

TEST(RealConfigs, NoFileIsForgotten) {
  std::set<std::string> listed;
  for (const RealConfig& config : kConfigs) listed.insert(concat(config.name, ".json"));
  std::set<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator(configs_folder())) {
    found.insert(file.path().filename());
  }
  EXPECT_EQ(found, listed);
}

}  // namespace
}  // namespace tessera
