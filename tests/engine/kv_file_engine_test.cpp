// What an engine has computed of a text goes to a file and into another engine, which goes on from
// there as if it had computed it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "engine/engine.h"
#include "tests/engine/error_of.h"
#include "tests/engine/model_fixture.h"
#include "tests/model_loaders/temporary_folder.h"

namespace tessera {
namespace {

using testing::HasSubstr;

class KvFileEngine : public testing::Test {
 protected:
  KvFileEngine() : prompt_(100) { std::iota(prompt_.begin(), prompt_.end(), 3); }

  EngineOptions options(int64_t page_size = 16) const {
    EngineOptions options = model_.options();
    options.page_size = page_size;
    return options;
  }
  static GenerationResult answer(Engine& engine, std::span<const TokenId> prompt) {
    const auto sequence = engine.create_sequence();
    SamplingParams params = {.temperature = 0.0, .max_tokens = 12};
    params.ignore_eos = true;
    return engine.generate(*sequence, prompt, params);
  }
  // The file of what the engine has of the prompt.
  KvFile save(const Engine& engine, std::span<const TokenId> prompt, int64_t num_tokens) const {
    const std::string path = folder_.path("prompt.kv");
    std::ofstream file(path, std::ios::binary);
    EXPECT_EQ(engine.save_kv(prompt, {std::string(64, '0'), "text"},
                             [&file](std::string_view bytes) { file << bytes; }),
              num_tokens);
    file.close();
    return KvFile::open(path);
  }

  ModelFixture model_;
  TemporaryFolder folder_;
  std::vector<TokenId> prompt_;
};

TEST_F(KvFileEngine, AnotherEngineGoesOnFromThere) {
  const auto first = Engine::load(options());
  const GenerationResult expected = answer(*first, prompt_);
  const KvFile file = save(*first, prompt_, 96);

  const auto second = Engine::load(options());
  second->load_kv(file);
  const GenerationResult result = answer(*second, prompt_);
  EXPECT_EQ(result.tokens, expected.tokens);
  EXPECT_EQ(result.cached_prompt_tokens, 96);
  EXPECT_EQ(result.computed_prompt_tokens, 4);
  // What has the same beginning and goes on otherwise.
  std::vector<TokenId> other(prompt_.begin(), prompt_.begin() + 50);
  other.push_back(7);
  const GenerationResult short_result = answer(*second, other);
  EXPECT_EQ(short_result.tokens, answer(*first, other).tokens);
  EXPECT_EQ(short_result.cached_prompt_tokens, 48);
}

TEST_F(KvFileEngine, Fp8PagesKeepTheirScales) {
  EngineOptions fp8 = options();
  fp8.kv_dtype = KvDType::kFloat8E4M3;
  const auto first = Engine::load(fp8);
  const GenerationResult expected = answer(*first, prompt_);
  const KvFile file = save(*first, prompt_, 96);
  EXPECT_FALSE(file.scales().empty());

  const auto second = Engine::load(fp8);
  second->load_kv(file);
  const GenerationResult result = answer(*second, prompt_);
  EXPECT_EQ(result.tokens, expected.tokens);
  EXPECT_EQ(result.cached_prompt_tokens, 96);
  const auto other = Engine::load(options());
  const Error error = error_of([&] { other->load_kv(file); });
  EXPECT_THAT(error.what(), HasSubstr("pages of 16 tokens; this run has float32"));
  EXPECT_THAT(error.hint(), HasSubstr("the options that it was made with"));
}

TEST_F(KvFileEngine, PagesNeedNotLieSideBySide) {
  const auto first = Engine::load(options());
  const GenerationResult expected = answer(*first, prompt_);
  const KvFile file = save(*first, prompt_, 96);

  const auto second = Engine::load(options());
  {
    // Two sequences that took pages in turns give back those of one.
    const auto kept = second->create_sequence();
    const auto given_back = second->create_sequence();
    for (int64_t length = 10; length < 60; length += 16) {
      const std::vector<TokenId> mine(static_cast<size_t>(length), 5);
      const std::vector<TokenId> theirs(static_cast<size_t>(length), 6);
      second->generate(*kept, mine, {.max_tokens = 1});
      second->generate(*given_back, theirs, {.max_tokens = 1});
    }
  }
  second->load_kv(file);
  EXPECT_EQ(answer(*second, prompt_).tokens, expected.tokens);
}

TEST_F(KvFileEngine, LessThanAPageIsNotWritten) {
  const auto engine = Engine::load(options());
  const auto write = [](std::string_view) { FAIL() << "something was written"; };
  EXPECT_EQ(engine->save_kv(prompt_, {}, write), 0);
  answer(*engine, std::span(prompt_).first(15));
  EXPECT_EQ(engine->save_kv(std::span(prompt_).first(15), {}, write), 0);
}

TEST_F(KvFileEngine, OtherLayoutsAndContextsAreRefused) {
  const auto engine = Engine::load(options());
  answer(*engine, prompt_);
  const KvFile file = save(*engine, prompt_, 96);
  const auto other = Engine::load(options(32));
  EXPECT_THAT(error_of([&] { other->load_kv(file); }).what(),
              HasSubstr("pages of 16 tokens; this run has float32"));
  EngineOptions small = options();
  small.context_size = 96;
  const auto narrow = Engine::load(small);
  const Error too_long = error_of([&] { narrow->load_kv(file); });
  EXPECT_THAT(too_long.what(), HasSubstr("96 tokens, which leave no room in the context of 96"));
  EXPECT_THAT(too_long.hint(),
              testing::MatchesRegex("a larger -c \\(up to .* tokens\\) takes more"));
}

// Keys are turned by RoPE: those of one stretch mean nothing to another.
TEST_F(KvFileEngine, AnotherStretchOfRopeIsRefused) {
  EngineOptions stretched = options();
  stretched.rope_scaling = RopeScalingChoice::kAuto;
  stretched.context_size = 400;
  const auto engine = Engine::load(stretched);
  const GenerationResult expected = answer(*engine, prompt_);
  const KvFile file = save(*engine, prompt_, 96);

  const auto same = Engine::load(stretched);
  same->load_kv(file);
  const GenerationResult result = answer(*same, prompt_);
  EXPECT_EQ(result.tokens, expected.tokens);
  EXPECT_EQ(result.cached_prompt_tokens, 96);

  stretched.context_size = 401;
  const auto further = Engine::load(stretched);
  EXPECT_THAT(
      error_of([&] { further->load_kv(file); }).what(),
      testing::AllOf(HasSubstr("stretched for 400 tokens"), HasSubstr("stretched for 401 tokens")));
  const auto plain = Engine::load(options());
  EXPECT_THAT(error_of([&] { plain->load_kv(file); }).what(),
              HasSubstr("stretched for 400 tokens; this run has"));
}

// Damage found halfway leaves nothing behind.
TEST_F(KvFileEngine, DamagedPagesAreGivenBack) {
  const auto engine = Engine::load(options());
  const GenerationResult expected = answer(*engine, prompt_);
  const KvFile file = save(*engine, prompt_, 96);
  const auto last_byte = static_cast<std::streamoff>(file.header().hash_begin(0, 0) - 1);
  std::fstream(file.path(), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(last_byte)
      .put('x');
  const auto second = Engine::load(options());
  const int64_t free_pages = second->statistics().free_pages;
  EXPECT_THAT(error_of([&] { second->load_kv(file); }).what(), HasSubstr("is damaged: page 5"));
  EXPECT_EQ(second->statistics().free_pages, free_pages);
  const GenerationResult result = answer(*second, prompt_);
  EXPECT_EQ(result.cached_prompt_tokens, 0);
  EXPECT_EQ(result.tokens, expected.tokens);
}

TEST_F(KvFileEngine, WhatProgressThrowsEndsLoading) {
  const auto engine = Engine::load(options());
  answer(*engine, prompt_);
  const KvFile file = save(*engine, prompt_, 96);
  const auto second = Engine::load(options());
  EXPECT_THROW(second->load_kv(file, [](uint64_t, uint64_t) { throw Stopped{}; }), Stopped);
  EXPECT_EQ(answer(*second, prompt_).cached_prompt_tokens, 0);
}

}  // namespace
}  // namespace tessera
