#include "apps/summarize/plan.h"

#include <gtest/gtest.h>

#include "engine/engine.h"

namespace tessera {
namespace {

// So many tokens of a byte each, with a sentence end now and then.
MappedDocument document_of(int64_t num_tokens) {
  MappedDocument document = {.name = "document"};
  for (int64_t i = 0; i < num_tokens; ++i) {
    document.text += i % 20 == 18 ? '.' : i % 20 == 19 ? ' ' : 'x';
    document.map.ends.push_back(static_cast<uint32_t>(i + 1));
  }
  return document;
}

SummaryPlan plan_of(int64_t num_tokens, PlanRequest request) {
  request.model_context_size = 4096;
  const MappedDocument document = document_of(num_tokens);
  if (request.whole_prompt_tokens == 0) {
    request.whole_prompt_tokens = num_tokens + request.frame_tokens;
  }
  return make_plan({&document, 1}, request);
}

TEST(Plan, WhatFitsIsReadInOnePass) {
  const PlanRequest request = {.context_size = 1000, .frame_tokens = 20, .answer_tokens = 100};
  const SummaryPlan fits = plan_of(880, request);
  EXPECT_EQ(fits.kind, SummaryPlan::Kind::kOnePass);
  ASSERT_EQ(fits.calls.size(), 1U);
  EXPECT_EQ(fits.calls[0][0].tokens, (Range{0, 880}));
  EXPECT_EQ(plan_of(881, request).kind, SummaryPlan::Kind::kChunks);
}

TEST(Plan, EveryCallFits) {
  for (const int64_t context : {256, 500, 1000, 4096}) {
    for (const int64_t tokens : {1000, 5000, 40000}) {
      const SummaryPlan plan = plan_of(
          tokens,
          {.context_size = context, .frame_tokens = 40, .answer_tokens = 512, .chunk = true});
      for (const std::vector<Slice>& call : plan.calls) {
        EXPECT_LE(call[0].tokens.size() + plan.frame_tokens + plan.answer_tokens, context);
      }
      if (plan.calls.size() == 1) continue;
      EXPECT_LE(2 * (plan.answer_tokens + kJoinTokens) + plan.frame_tokens + plan.answer_tokens,
                context);
      EXPECT_GE(plan.merges.rounds, 1);
    }
  }
}

TEST(Plan, WhatWasAskedForIsReserved) {
  const PlanRequest request = {
      .context_size = 1000, .frame_tokens = 20, .answer_tokens = 300, .has_answer_wish = true};
  EXPECT_EQ(
      plan_of(5000, {.context_size = 1000, .frame_tokens = 20, .answer_tokens = 300}).answer_tokens,
      241);
  try {
    plan_of(
        5000,
        {.context_size = 1000, .frame_tokens = 20, .answer_tokens = 400, .has_answer_wish = true});
    FAIL() << "two summaries do not fit";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("two summaries"), std::string::npos) << error.what();
  }
  EXPECT_EQ(plan_of(5000, request).answer_tokens, 300);
}

TEST(Plan, ShortContextsAreRefusedWithTheNumbers) {
  try {
    plan_of(5000, {.context_size = 128, .frame_tokens = 60, .answer_tokens = 512});
    FAIL() << "there is no room";
  } catch (const Error& error) {
    for (const char* number : {"128", "76", "64"}) {
      EXPECT_NE(std::string(error.what()).find(number), std::string::npos) << error.what();
    }
  }
}

TEST(Plan, ALongInstructionIsWhatHasToBeShorter) {
  const auto hint_of = [](int64_t frame_tokens) -> std::string {
    try {
      plan_of(5000, {.context_size = 128, .frame_tokens = frame_tokens, .answer_tokens = 512});
    } catch (const Error& error) {
      return error.hint();
    }
    return "";
  };
  EXPECT_EQ(hint_of(40), "ask for a shorter summary (-n)");
  EXPECT_EQ(hint_of(60), "shorten the instruction");
  EXPECT_EQ(hint_of(500), "shorten the instruction");
}

TEST(Plan, MiddleAndErrorAreChoices) {
  PlanRequest request = {.context_size = 1000,
                         .frame_tokens = 20,
                         .answer_tokens = 100,
                         .on_overflow = OnOverflow::kMiddle};
  const SummaryPlan plan = plan_of(5000, request);
  EXPECT_EQ(plan.kind, SummaryPlan::Kind::kMiddle);
  ASSERT_EQ(plan.calls.size(), 1U);
  ASSERT_EQ(plan.calls[0].size(), 2U);
  EXPECT_EQ(plan.calls[0][0].tokens.begin, 0);
  EXPECT_EQ(plan.calls[0][1].tokens.end, 5000);
  request.on_overflow = OnOverflow::kError;
  EXPECT_THROW(plan_of(5000, request), Error);
  EXPECT_EQ(plan_of(500, request).kind, SummaryPlan::Kind::kOnePass);
}

// What a prompt holds, counted from its parts.
int64_t tokens_in_prompt(const SummaryPlan& plan, std::span<const MappedDocument> documents) {
  int64_t tokens = plan.frame_tokens;
  for (const Slice& slice : plan.calls.at(0)) {
    tokens += slice.tokens.size() + documents[slice.document].header_tokens;
  }
  return tokens + (std::ssize(plan.calls.at(0)) - 1) * kJoinTokens;
}

TEST(Plan, TheMiddleOfNamedDocumentsLeavesRoomForTheirNames) {
  for (const int64_t num_documents : {2, 5, 60, 300}) {
    for (const int64_t header_tokens : {1, 18, 100}) {
      std::vector<MappedDocument> documents(static_cast<size_t>(num_documents), document_of(400));
      documents[0] = document_of(1200);
      for (MappedDocument& document : documents) document.header_tokens = header_tokens;
      const SummaryPlan plan = make_plan(documents, {.context_size = 1000,
                                                     .frame_tokens = 20,
                                                     .answer_tokens = 100,
                                                     .on_overflow = OnOverflow::kMiddle});
      const int64_t tokens = tokens_in_prompt(plan, documents);
      EXPECT_LE(tokens + plan.answer_tokens, 1000) << num_documents << ", " << header_tokens;
      // Names of documents that are not read take no room.
      EXPECT_GE(tokens + plan.answer_tokens, 800) << num_documents << ", " << header_tokens;
      EXPECT_GE(plan.longest_call(), tokens + plan.answer_tokens);
      EXPECT_EQ(plan.calls[0].front().document, 0U);
      EXPECT_EQ(plan.calls[0].back().document, documents.size() - 1);
    }
  }
}

TEST(Plan, NamesCountWhereEverythingIsReadAtOnce) {
  std::vector<MappedDocument> documents(60, document_of(1));
  for (MappedDocument& document : documents) document.header_tokens = 5;
  const SummaryPlan plan = make_plan(
      documents,
      {.context_size = 1000, .frame_tokens = 20, .whole_prompt_tokens = 500, .answer_tokens = 100});
  EXPECT_EQ(plan.longest_call(), 600);
  EXPECT_EQ(plan.prompt_tokens(), 500);
}

TEST(Plan, ChunksEndWithTheirDocument) {
  const std::vector<MappedDocument> documents = {document_of(1500), document_of(100)};
  const SummaryPlan plan =
      make_plan(documents, {.context_size = 1000, .frame_tokens = 20, .answer_tokens = 100});
  EXPECT_EQ(plan.document_tokens, 1600);
  ASSERT_EQ(plan.calls.size(), 4U);
  EXPECT_EQ(plan.calls[2][0].tokens.end, 1500);
  EXPECT_EQ(plan.calls[3][0].document, 1U);
  EXPECT_EQ(plan.calls[3][0].tokens, (Range{0, 100}));
}

TEST(Merges, GroupsAreAsLargeAsTheyCanBe) {
  const std::vector<int64_t> tokens = {40, 40, 40, 10, 90, 20};
  EXPECT_EQ(merge_groups(tokens, 100), (std::vector<Range>{{0, 2}, {2, 4}, {4, 6}}));
}

TEST(Merges, GroupsThatDoNotFitAreSeen) {
  const std::vector<int64_t> tokens = {40, 70, 200};
  const std::vector<Range> groups = merge_groups(tokens, 100);
  EXPECT_EQ(groups, (std::vector<Range>{{0, 2}, {2, 3}}));
  EXPECT_FALSE(groups_fit(groups, tokens, 100));
  EXPECT_TRUE(groups_fit(groups, tokens, 110));
}

TEST(Merges, EveryRoundLeavesFewer) {
  // Even texts that are longer than they may be.
  for (size_t count = 2; count < 40; ++count) {
    const std::vector<int64_t> tokens(count, 1000);
    EXPECT_LT(merge_groups(tokens, 100).size(), count);
  }
  const MergeCount merges = count_merges(92, 64, 900);
  EXPECT_EQ(merges.rounds, 2);
  EXPECT_EQ(merges.calls, 7 + 1);
  EXPECT_EQ(count_merges(1, 64, 900).rounds, 0);
  EXPECT_EQ(count_merges(1 << 20, 100, 200).rounds, 20);
}

}  // namespace
}  // namespace tessera
