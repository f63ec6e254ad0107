// What decoders make of tokens, with the texts that the tokenizers library gives.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/engine/error_of.h"
#include "tests/engine/text/json_tokenizer_fixture.h"

namespace tessera {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const json kToSpace = {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}};
const json kByteLevel = {{"type", "ByteLevel"}};
const json kByteFallback = {{"type", "ByteFallback"}};
const json kMetaspace = {{"type", "Metaspace"}, {"replacement", "\u2581"}};
const json kFuse = {{"type", "Fuse"}};
const json kStrip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};

json file_with_decoders(const json& steps) {
  return {{"added_tokens",
           {{{"id", 6}, {"content", "  x"}, {"special", false}},
            {{"id", 7}, {"content", "<s>"}, {"special", true}}}},
          {"decoder", {{"type", "Sequence"}, {"decoders", steps}}},
          {"model",
           {{"type", "BPE"},
            {"vocab",
             {{"a", 0},
              {"\u2581", 1},
              {" a", 2},
              {"<0x20>", 3},
              {"\u2581\u2581a", 4},
              {"a \u2581", 5}}},
            {"merges", json::array()}}}};
}

TEST(TokenDecoder, StripTakesAnySpaceThatTheTextBeginsWith) {
  const auto tokenizer =
      load_tokenizer_json(file_with_decoders({kToSpace, kByteFallback, kFuse, kStrip}).dump());
  EXPECT_EQ(tokenizer->decode({0, 1, 0}), "a a");
  EXPECT_EQ(tokenizer->decode({1, 0}), "a");
  EXPECT_EQ(tokenizer->decode({2, 2}), "a a");
  EXPECT_EQ(tokenizer->decode({3, 3, 0}), " a");
  EXPECT_EQ(tokenizer->decode({4}), " a");
  EXPECT_EQ(tokenizer->decode({7, 6, 6}), " x  x");
}

TEST(TokenDecoder, MetaspaceTakesWhatStandsForSpacesOutOfTheFirstToken) {
  const auto tokenizer =
      load_tokenizer_json(file_with_decoders({kByteFallback, kMetaspace}).dump());
  EXPECT_EQ(tokenizer->decode({4, 4}), "a  a");
  EXPECT_EQ(tokenizer->decode({5, 5}), "a a  ");
  EXPECT_EQ(tokenizer->decode({2, 3, 1}), " a  ");
  EXPECT_EQ(tokenizer->decode({7, 4}), "a");
}

TEST(TokenDecoder, RefusesStepsThatNeedMoreThanOneToken) {
  const auto refused = [](const json& steps) {
    return std::string(
        error_of([&] { load_tokenizer_json(file_with_decoders(steps).dump()); }).what());
  };
  const std::vector<std::vector<json>> chains = {{kStrip},
                                                 {kByteFallback, kStrip},
                                                 {kMetaspace, kFuse, kStrip},
                                                 {kFuse, kStrip, kStrip},
                                                 {kToSpace, kMetaspace},
                                                 {kMetaspace, kMetaspace},
                                                 {kFuse, kToSpace},
                                                 {kByteFallback, kByteLevel},
                                                 {kByteLevel, kMetaspace}};
  for (const std::vector<json>& steps : chains) {
    EXPECT_THAT(refused(steps), HasSubstr("not supported at this place")) << json(steps);
  }
  json empty = kToSpace;
  empty["pattern"]["String"] = "";
  EXPECT_THAT(refused(json::array({empty})),
              HasSubstr("decoder.decoders[0].pattern.String is empty"));
}

}  // namespace
}  // namespace tessera
