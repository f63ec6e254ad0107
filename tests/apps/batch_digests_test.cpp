#include <gtest/gtest.h>

#include <set>

#include "apps/batch/answers_digest.h"
#include "apps/batch/digests.h"
#include "apps/options/sampling_json.h"
#include "engine/engine.h"
#include "engine/text/sha256.h"

namespace tessera {
namespace {

nlohmann::ordered_json answer(const std::string& custom_id, const std::string& text) {
  nlohmann::ordered_json record;
  record["custom_id"] = custom_id;
  record["response"]["body"]["choices"] = {{{"index", 0}, {"text", text}}};
  record["error"] = nullptr;
  return record;
}

std::string digest_of(const std::vector<nlohmann::ordered_json>& records) {
  AnswersDigest digest;
  for (const nlohmann::ordered_json& record : records) digest.add(record);
  return digest.text();
}

TEST(AnswersDigest, DependsOnEveryAnswerAndNotOnTheirOrder) {
  const auto a = answer("a", "x");
  const auto b = answer("b", "y");
  EXPECT_EQ(digest_of({}), std::string(64, '0'));
  EXPECT_EQ(digest_of({a, b}), digest_of({b, a}));
  EXPECT_NE(digest_of({a, b}), digest_of({a}));
  EXPECT_NE(digest_of({a}), digest_of({answer("a", "y")}));
  EXPECT_NE(digest_of({answer("a", "x"), answer("b", "y")}),
            digest_of({answer("a", "y"), answer("b", "x")}));
  EXPECT_NE(digest_of({a, a}), digest_of({})) << "equal answers do not cancel each other";
}

TEST(AnswersDigest, DoesNotDependOnTheTimeOfAnAnswer) {
  auto record = answer("a", "x");
  record["response"]["body"]["id"] = "chatcmpl-00000000000012ab";
  record["response"]["body"]["created"] = 1700000000;
  EXPECT_EQ(digest_of({record}), digest_of({answer("a", "x")}));
}

TEST(AnswersDigest, PartsAddUp) {
  AnswersDigest first, second;
  first.add(answer("a", "x"));
  second.add(answer("b", "y"));
  first.add(second);
  EXPECT_EQ(first.text(), digest_of({answer("a", "x"), answer("b", "y")}));
}

TEST(AnswersDigest, IsThatOfWhatTheFileHolds) {
  const auto record = answer("a", "half a character: \xc3");
  const std::string line =
      record.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  EXPECT_EQ(digest_of({record}), digest_of({nlohmann::ordered_json::parse(line)}));
}

TEST(Digests, OfAnIdAreTheFirstBitsOfItsSha256) {
  const IdDigest digest = digest_of_id("a");
  EXPECT_EQ(hexadecimal(digest.high) + hexadecimal(digest.low), sha256("a").substr(0, 32));
  EXPECT_NE(digest, digest_of_id("b"));
}

TEST(Digests, RequestIdsAreReadAsTheyAreWritten) {
  EXPECT_EQ(request_id(0x12ab), "req_00000000000012ab");
  EXPECT_EQ(digest_in_request_id("req_00000000000012ab"), 0x12abu);
  for (const char* text : {"", "req_", "00000000000012ab", "req_12ab", "req_00000000000012ag"}) {
    EXPECT_EQ(digest_in_request_id(text), 0u) << text;
  }
}

TEST(Digests, OfARequestDifferWithAllThatItAsks) {
  BatchRequest request;
  request.custom_id = "a";
  request.endpoint = Endpoint::kCompletions;
  request.prompt = std::vector<TokenId>{1, 2};
  EXPECT_EQ(hexadecimal(digest_of_request(request)),
            sha256(concat(R"({"custom_id":"a","prompt":[1,2],"sampling":)",
                          sampling_json(request.sampling).dump(), "}"))
                .substr(0, 16))
      << "an output that was begun with it could not be gone on with";
  std::set<uint64_t> digests = {digest_of_request(request)};
  for (const auto change :
       {+[](BatchRequest& r) { r.prompt = "1, 2"; }, +[](BatchRequest& r) { r.num_choices = 2; },
        +[](BatchRequest& r) { r.sampling.min_tokens = 1; },
        +[](BatchRequest& r) { r.sampling.ignore_eos = true; },
        +[](BatchRequest& r) { r.logprobs = true; },
        +[](BatchRequest& r) { r.logprobs = true, r.top_logprobs = 2; }}) {
    BatchRequest changed = request;
    change(changed);
    EXPECT_TRUE(digests.insert(digest_of_request(changed)).second);
  }
}

}  // namespace
}  // namespace tessera
