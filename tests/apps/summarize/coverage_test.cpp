// Chunks hold all of a document: every token and every byte, none twice but what is stated.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/summarize/chunks.h"
#include "apps/summarize/cuts.h"
#include "apps/summarize/prompts.h"
#include "engine/text/utf8.h"
#include "model_loaders/file_reader.h"
#include "tests/apps/summarize/odd_documents.h"
#include "tests/engine/text/tokenizer_file.h"
#include "tests/source_folder.h"

namespace tessera {
namespace {

void expect_complete(const MappedDocument& document, const std::vector<Slice>& chunks,
                     const ChunkLimits& limits) {
  ASSERT_FALSE(chunks.empty());
  Range tokens = {0, 0};
  Range bytes = {0, 0};
  std::string joined;
  for (const Slice& chunk : chunks) {
    // No gap, and something new.
    EXPECT_LE(chunk.tokens.begin, tokens.end);
    EXPECT_LE(chunk.bytes.begin, bytes.end);
    EXPECT_TRUE(chunk.tokens.end > tokens.end || document.map.num_tokens() == 0);
    EXPECT_LE(tokens.end - chunk.tokens.begin, limits.overlap_tokens);
    EXPECT_LE(chunk.tokens.size(), limits.max_tokens);
    const std::string text = document.text.substr(static_cast<size_t>(chunk.bytes.begin),
                                                  static_cast<size_t>(chunk.bytes.size()));
    EXPECT_FALSE(find_invalid_utf8(text));
    joined += text.substr(static_cast<size_t>(bytes.end - chunk.bytes.begin));
    tokens = chunk.tokens;
    bytes = chunk.bytes;
  }
  EXPECT_EQ(tokens.end, document.map.num_tokens());
  EXPECT_EQ(joined, document.text);
}

// The demo model's tokenizer, and one that composes accents.
class Coverage : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<Tokenizer> load_tokenizer() {
    const std::string root = source_folder();
    ModelFolder folder = read_model_folder({.model = root + "/weights/demo"});
    folder.config.vocab_size = 1 << 20;
    if (*GetParam() != '\0') folder.tokenizer_path = root + GetParam();
    return Tokenizer::load(folder);
  }
};

TEST_P(Coverage, OfOddDocumentsIsComplete) {
  const auto tokenizer = load_tokenizer();
  for (int index = 0; index < kNumOddDocuments; ++index) {
    const std::string text = odd_document(index);
    const MappedDocument document = {
        .name = "odd", .text = text, .map = map_tokens(*tokenizer, text)};
    for (const ChunkLimits limits :
         {ChunkLimits{64, 0}, ChunkLimits{64, 16}, ChunkLimits{300, 20}, ChunkLimits{8192, 64}}) {
      SCOPED_TRACE(testing::Message() << "document " << index << ", " << limits.max_tokens
                                      << " tokens, overlap " << limits.overlap_tokens);
      expect_complete(document, plan_chunks(document, 0, limits), limits);
    }
  }
}

// What a plan counts on. A chunk may have fewer where the map is made of small pieces.
TEST_P(Coverage, AChunkByItselfHasNoMoreTokens) {
  const auto tokenizer = load_tokenizer();
  for (int index = 0; index < kNumOddDocuments; ++index) {
    const std::string text = odd_document(index);
    const MappedDocument document = {
        .name = "odd", .text = text, .map = map_tokens(*tokenizer, text)};
    for (const Slice& chunk : plan_chunks(document, 0, {64, 0})) {
      const std::string part = joined_text({&document, 1}, {&chunk, 1});
      const auto alone = static_cast<int64_t>(tokenizer->encode(part, false).size());
      EXPECT_LE(alone, chunk.tokens.size() + 8)
          << "document " << index << ", token " << chunk.tokens.begin;
    }
  }
}

TEST_P(Coverage, AMapEndsWithTheText) {
  const auto tokenizer = load_tokenizer();
  for (int index = 0; index < kNumOddDocuments; ++index) {
    const std::string text = odd_document(index);
    const TokenMap map = map_tokens(*tokenizer, text);
    EXPECT_TRUE(std::ranges::is_sorted(map.ends));
    EXPECT_TRUE(map.ends.empty() || map.ends.back() == text.size()) << index;
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, Coverage,
                         testing::Values("", "/tests/engine/text/data/qwen2.json"));

// Cutting the text around each run of spaces would cut words, which adds tokens.
TEST(TokenMap, RunsOfSpacesThatBecomeOneAddNoTokens) {
  nlohmann::json file = nlohmann::json::parse(
      read_whole_file(source_folder().string() + "/weights/demo/tokenizer.json", 1 << 24));
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", " "}};
  const auto tokenizer = load_tokenizer_file("tokenizer.json", file.dump(), {}, 1 << 20);
  std::string text;
  for (int i = 0; i < 300; ++i) {
    text += std::string(static_cast<size_t>(i % 4), ' ') +
            "Sentences are  parted by several   spaces.  Once upon a time.\n";
  }
  text += "  ";
  const TokenMap map = map_tokens(*tokenizer, text);
  EXPECT_EQ(map.ends.size(), tokenizer->encode(text).size());
  EXPECT_TRUE(std::ranges::is_sorted(map.ends));
  EXPECT_EQ(map.ends.back(), text.size());
}

TEST(Middle, BeginningAndEndAreReadAndNothingTwice) {
  for (int index = 0; index < kNumOddDocuments; ++index) {
    std::vector<MappedDocument> documents(3);
    int64_t num_tokens = 0;
    for (size_t part = 0; part < documents.size(); ++part) {
      documents[part].text = odd_document(index + static_cast<int>(part));
      for (size_t end = 1; end <= documents[part].text.size(); ++end) {
        documents[part].map.ends.push_back(static_cast<uint32_t>(end));
      }
      documents[part].header_tokens = index % 5;
      num_tokens += documents[part].map.num_tokens();
    }
    const int64_t room = 64;
    if (num_tokens <= room) continue;
    const std::vector<Slice> slices = plan_middle(documents, room);
    int64_t read = 0;
    for (size_t at = 0; at < slices.size(); ++at) {
      read += slices[at].tokens.size() + beside_tokens(documents[slices[at].document]);
      if (at == 0 || slices[at].document != slices[at - 1].document) continue;
      EXPECT_GE(slices[at].tokens.begin, slices[at - 1].tokens.end);
    }
    EXPECT_LE(read, room);
    EXPECT_EQ(slices.front().document, 0U);
    EXPECT_EQ(slices.front().bytes.begin, 0);
    EXPECT_EQ(slices.back().document, 2U);
    EXPECT_EQ(slices.back().bytes.end, static_cast<int64_t>(documents.back().text.size()));
  }
}

}  // namespace
}  // namespace tessera
