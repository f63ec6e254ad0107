// Model folders that are not as they should be: what is refused, what is only warned about, and
// what the person reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/model_description.h"
#include "tests/engine/model_fixture.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Error engine_load_error(const ModelFixture& model) {
  return error_of([&] { Engine::load(model.options()); });
}

// What loading logs.
std::string load_log(const EngineOptions& options) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Engine::load(options);
  return testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
}

TEST(EngineLoad, GoodFoldersLoadWithoutWarnings) {
  for (const char* const name : {"gqa_d64", "tied", "sliding_window"}) {
    EXPECT_THAT(load_log(ModelFixture(name).options()), Not(HasSubstr("warning"))) << name;
  }
}

TEST(EngineLoad, NamesUpToFiveMissingTensors) {
  const ModelFixture model;
  HostWeights weights = model.read_weights();
  weights.erase("model.layers.1.mlp.up_proj.weight");
  model.write_weights(weights);
  EXPECT_THAT(engine_load_error(model).what(),
              AllOf(HasSubstr("1 tensor"), HasSubstr("model.layers.1.mlp.up_proj.weight")));

  std::erase_if(weights, [](const auto& item) { return item.first.starts_with("model.layers.0"); });
  model.write_weights(weights);
  const std::string message = engine_load_error(model).what();
  EXPECT_THAT(message, HasSubstr("10 tensors"));
  size_t names = 0;
  for (size_t at = message.find("model.layers"); at != std::string::npos;
       at = message.find("model.layers", at + 1)) {
    ++names;
  }
  EXPECT_EQ(names, 5u) << message;
}

TEST(EngineLoad, AMissingOutputMatrixNamesTheRule) {
  const ModelFixture model;
  HostWeights weights = model.read_weights();
  weights.erase("lm_head.weight");
  model.write_weights(weights);
  EXPECT_THAT(engine_load_error(model).what(),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("tie_word_embeddings")));
}

TEST(EngineLoad, AWrongShapeShowsBothShapesAndTheFields) {
  const ModelFixture model;
  HostWeights weights = model.read_weights();
  HostWeight& q_proj = weights.at("model.layers.0.self_attn.q_proj.weight");
  q_proj.shape = {128, 64};
  q_proj.values.resize(128 * 64);
  model.write_weights(weights);
  const Error error = engine_load_error(model);
  EXPECT_THAT(error.what() + error.hint(),
              AllOf(HasSubstr("q_proj"), HasSubstr("[128, 64]"), HasSubstr("[256, 64]"),
                    HasSubstr("num_attention_heads"), HasSubstr("head_dim")));
}

TEST(EngineLoad, TensorsThatNobodyNeedsAreIgnored) {
  const ModelFixture model;
  HostWeights weights = model.read_weights();
  weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{2}, {0.0f, 0.0f}};
  model.write_weights(weights);
  EXPECT_THAT(load_log(model.options()), Not(HasSubstr("warning")));
}

// As Qwen 3 has them: without its norms the queries and keys would be wrong.
TEST(EngineLoad, TensorsOfAnotherBlockAreAnErrorUnlessAllowed) {
  const ModelFixture model;
  HostWeights weights = model.read_weights();
  for (const char* const name :
       {"0.self_attn.q", "0.self_attn.k", "1.self_attn.q", "1.self_attn.k"}) {
    weights[concat("model.layers.", name, "_norm.weight")] = {{64}, std::vector(64, 1.0f)};
  }
  model.write_weights(weights);
  EngineOptions options = model.options();
  const auto refusal =
      AllOf(HasSubstr("4 tensors"), HasSubstr("model.layers.0.self_attn.k_norm.weight, "
                                              "model.layers.0.self_attn.q_norm.weight"));
  EXPECT_THAT(engine_load_error(model).what(), refusal);
  EXPECT_THAT(engine_load_error(model).hint(), HasSubstr("--allow-unknown-weights"));
  EXPECT_THAT(error_of([&] { describe_model(options); }).what(), refusal);
  options.allow_unknown_weights = true;
  EXPECT_THAT(load_log(options), refusal);
  EXPECT_THAT(describe_model(options).warnings, Contains(refusal));
}

TEST(EngineLoad, FindsNonFiniteWeightsWhenAsked) {
  const ModelFixture model;
  HostWeights weights = model.read_weights();
  weights.at("model.layers.1.self_attn.q_proj.weight").values[77] = kNaN;
  model.write_weights(weights);
  EngineOptions options = model.options();
  EXPECT_NO_THROW(Engine::load(options));
  options.check_weights = true;
  EXPECT_THAT(error_of([&] { Engine::load(options); }).what(),
              AllOf(HasSubstr("model.layers.1.self_attn.q_proj.weight"), HasSubstr("nan"),
                    HasSubstr("77")));
}

TEST(EngineLoad, WarnsOfAnEndTokenOutsideTheVocabulary) {
  const ModelFixture model;
  model.edit("generation_config.json", R"("eos_token_id": 2)", R"("eos_token_id": [2, 5000])");
  EXPECT_THAT(load_log(model.options()),
              AllOf(HasSubstr("generation_config.json"), HasSubstr("5000"), HasSubstr("320")));
  EXPECT_THAT(describe_model(model.options()).eos_tokens, ElementsAre(2));
}

TEST(EngineLoad, WarnsWhenNothingEndsAnAnswer) {
  const ModelFixture model;
  model.edit("generation_config.json", R"("eos_token_id": 2)", R"("bos_token_id": 1)");
  model.edit("generation_config.json", R"("bos_token_id": 1,)", "");
  model.edit("config.json", R"("eos_token_id": 2,)", "");
  model.edit("tokenizer_config.json", R"("eos_token": "</s>",)", "");
  model.edit("tokenizer.model", "</s>", "<xx>");
  EXPECT_THAT(load_log(model.options()), HasSubstr("--max-tokens"));
  const auto engine = Engine::load(model.options());
  EXPECT_THAT(engine->stop_tokens(), IsEmpty());
}

TEST(EngineLoad, AContextThatDoesNotFitShowsTheTableAndWhatWould) {
  const ModelFixture model;
  const int64_t context_size = int64_t{1} << 30;
  model.edit("config.json", R"("max_position_embeddings": 256)",
             concat(R"("max_position_embeddings": )", context_size));
  EngineOptions options = model.options();
  options.context_size = context_size;
  const Error error = error_of([&] { Engine::load(options); });
  EXPECT_THAT(error.what(), AllOf(HasSubstr("weights"), HasSubstr("KV cache"),
                                  HasSubstr("activations"), HasSubstr("free")));
  EXPECT_THAT(error.hint(), HasSubstr("--ctx-size"));
}

TEST(EngineLoad, AContextBeyondTheModelIsAnError) {
  const ModelFixture model;
  EngineOptions options = model.options();
  options.context_size = 257;
  const Error error = error_of([&] { Engine::load(options); });
  EXPECT_THAT(error.what(), HasSubstr("257"));
  EXPECT_THAT(error.hint(), HasSubstr("256 tokens"));
}

TEST(EngineLoad, AModelMayBeShorterThanAPage) {
  const ModelFixture model;
  model.edit("config.json", R"("max_position_embeddings": 256)",
             R"("max_position_embeddings": 48)");
  const auto engine = Engine::load(model.options());
  EXPECT_EQ(engine->context_size(), 48);
}

TEST(EngineLoad, OptionsAreCheckedBeforeFiles) {
  EngineOptions options;
  options.model = "/nonexistent";
  options.page_size = 48;
  EXPECT_THAT(error_of([&] { Engine::load(options); }).what(), HasSubstr("page_size"));
}

TEST(EngineLoad, NamesTheFolderThatIsNotThere) {
  EngineOptions options;
  options.model = "/nonexistent/model";
  EXPECT_THAT(error_of([&] { Engine::load(options); }).what(), HasSubstr("/nonexistent/model"));
  EXPECT_THAT(error_of([&] { describe_model(options); }).what(), HasSubstr("/nonexistent/model"));
}

TEST(EngineLoad, NamesTheFileThatIsNotThere) {
  for (const char* const file : {"config.json", "model.safetensors", "tokenizer.model"}) {
    const ModelFixture model;
    model.remove(file);
    EXPECT_THAT(engine_load_error(model).what(), HasSubstr(file));
    EXPECT_THAT(error_of([&] { describe_model(model.options()); }).what(), HasSubstr(file));
  }
}

TEST(EngineLoad, ReportsProgressUpToTheEnd) {
  const ModelFixture model;
  uint64_t last = 0, total = 0;
  Engine::load(model.options(), [&](uint64_t done_bytes, uint64_t total_bytes) {
    EXPECT_GE(done_bytes, last);
    last = done_bytes;
    total = total_bytes;
  });
  EXPECT_GT(total, 0u);
  EXPECT_EQ(last, total);
}

TEST(EngineLoad, AnUnknownChatTemplateIsOnlyAnErrorWhenUsed) {
  const ModelFixture model;
  const auto engine = Engine::load(model.options());
  EXPECT_THAT(error_of([&] { engine->chat_template(); }).hint(), HasSubstr("--chat-template"));
  EngineOptions options = model.options();
  options.chat_template = "no such template";
  EXPECT_THAT(error_of([&] { Engine::load(options); }).what(), HasSubstr("no such template"));
}

TEST(DescribeModel, DescribesAFolder) {
  const ModelFixture model;
  const ModelDescription description = describe_model(model.options());
  EXPECT_EQ(description.tensors.size(), 21u);
  EXPECT_EQ(description.num_parameters * 4,
            static_cast<int64_t>(description.weights_bytes_on_disk));
  EXPECT_EQ(description.folder.config.head_dim, 64);
  EXPECT_EQ(description.tokenizer_size, 320);
  EXPECT_EQ(description.bos_token, 1);
  EXPECT_THAT(description.eos_tokens, ElementsAre(2));
  EXPECT_THAT(description.warnings, IsEmpty());
  EXPECT_THAT(description.device, HasSubstr("CPU"));
  ASSERT_TRUE(description.memory_plan.has_value()) << description.memory_problem;
  EXPECT_EQ(description.memory_plan->limits.context_size, 256);
  EXPECT_EQ(description.memory_plan->total_bytes(),
            Engine::load(model.options())->allocated_bytes());
}

TEST(DescribeModel, DescribesShards) {
  EngineOptions options;
  options.model = golden_folder("sharded");
  options.device = DeviceChoice::kCpu;
  const ModelDescription description = describe_model(options);
  EXPECT_EQ(description.tensors.size(), 21u);
  EXPECT_EQ(description.num_parameters * 2,
            static_cast<int64_t>(description.weights_bytes_on_disk));
}

TEST(DescribeModel, SaysWhyThereIsNoPlan) {
  const ModelFixture model;
  const int64_t context_size = int64_t{1} << 30;
  model.edit("config.json", R"("max_position_embeddings": 256)",
             concat(R"("max_position_embeddings": )", context_size));
  EngineOptions options = model.options();
  options.context_size = context_size;
  const ModelDescription description = describe_model(options);
  EXPECT_FALSE(description.memory_plan.has_value());
  EXPECT_THAT(description.memory_problem, HasSubstr("KV cache"));
}

}  // namespace
}  // namespace tessera
