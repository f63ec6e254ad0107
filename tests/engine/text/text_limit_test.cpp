// Texts that are refused by their length alone.
#include "engine/text/text_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/longer_context.h"
#include "engine/model_description.h"
#include "tests/engine/reciting_model.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST(TextLimit, RefusesWhatCannotFitAndNothingElse) {
  const TextLimit limit = {.context_size = 256, .max_token_bytes = 9};
  EXPECT_NO_THROW(limit.check("a text", 0));
  EXPECT_NO_THROW(limit.check("a text", 256 * 9));
  EXPECT_THROW(limit.check("a text", 257 * 9), PromptTooLong);
  const TextLimit limitless = {.context_size = 256};
  EXPECT_NO_THROW(limitless.check("a text", ~uint64_t{0}));
}

TEST(TextLimit, TellsTheNumbers) {
  const TextLimit limit = {.context_size = 256, .max_token_bytes = 9};
  const Error error = error_of([&] { limit.check("report.txt", 9'000'000); });
  EXPECT_STREQ(error.what(),
               "report.txt: 9000000 bytes are at least 1000000 tokens (none is longer than 9 "
               "bytes), the context holds 256");
}

TEST(TextLimit, IsKnownWithoutAnEngine) {
  const ModelFixture model;
  model.remove("model.safetensors");
  EngineOptions options = model.options();
  EXPECT_EQ(read_text_limit(options).context_size, 256);
  EXPECT_EQ(read_text_limit(options).max_token_bytes, 9);
  options.context_size = 64;
  EXPECT_EQ(read_text_limit(options).context_size, 64);
}

TEST(TextLimit, EnginesRefuseBeforeTheyTokenise) {
  const ModelFixture model;
  EngineOptions options = model.options();
  options.context_size = 64;
  options.chat_template = "llama2";
  const auto engine = Engine::load(options);
  EXPECT_EQ(engine->text_limit().context_size, 64);
  const std::string text(64 * 9 + 9, 'a');
  const Message message{Role::kUser, text};
  const EncodeProgress fail = [](uint64_t, uint64_t) { FAIL() << "tokenises"; };
  EXPECT_THROW(engine->encode_text(text, fail), PromptTooLong);
  EXPECT_THROW(engine->encode_chat({&message, 1}, {}, fail), PromptTooLong);
  // Shorter ones are counted in tokens, and then refused.
  const auto sequence = engine->create_sequence();
  EXPECT_THROW(engine->generate(*sequence, engine->encode_text(text.substr(0, 200)), {}),
               PromptTooLong);
}

TEST(TextLimit, NamesALongerContextWhereThereIsOne) {
  const ModelFixture model;
  EngineOptions options = model.options();
  EXPECT_THAT(read_text_limit(options).hint(), HasSubstr("--rope-scaling auto -c N takes more;"));
  options.context_size = 64;
  EXPECT_THAT(read_text_limit(options).hint(), HasSubstr("a larger -c (up to 256 tokens) takes"));
  options.context_size = 300;
  options.rope_scaling = RopeScalingChoice::kAuto;
  EXPECT_THAT(read_text_limit(options).hint(), HasSubstr("a larger -c takes more;"));
  const ModelFolder folder = read_model_folder(model.options());
  EXPECT_EQ(longer_context(model.options(), folder, 128), "");  // memory holds no more
  ModelFolder scaled = folder;
  scaled.config.rope_tables.at(0).scaling = {.kind = RopeScaling::Kind::kDynamic, .factor = 2.0};
  EXPECT_EQ(longer_context(model.options(), scaled, 256), "");
}

}  // namespace
}  // namespace tessera
