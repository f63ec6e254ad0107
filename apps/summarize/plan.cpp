#include "apps/summarize/plan.h"

#include <algorithm>
#include <numeric>

#include "apps/options/sampling_options.h"
#include "apps/summarize/chunks.h"
#include "engine/engine.h"

namespace tessera {
namespace {

// Longer chunks are read no faster, as attention grows with their length, and models find less in
// them.
constexpr int64_t kUsualChunkTokens = 8192;
constexpr int64_t kUsualOverlapTokens = 64;
// Shorter ones are not worth a call.
constexpr int64_t kLeastChunkTokens = 64;
// A text by itself may have some more tokens than it has within the document: its first word, what
// the template puts beside it.
constexpr int64_t kSeamTokens = 16;
constexpr int64_t kLeastAnswerTokens = 16;
// Of what the instruction leaves, where nobody asked for more.
constexpr int64_t kAnswerPart = 4;

int64_t count_tokens(std::span<const MappedDocument> documents) {
  int64_t tokens = 0;
  for (const MappedDocument& document : documents) tokens += document.map.num_tokens();
  return tokens;
}

int64_t count_beside_tokens(std::span<const MappedDocument> documents) {
  int64_t tokens = 0;
  for (const MappedDocument& document : documents) tokens += beside_tokens(document);
  return tokens;
}

// Of a prompt that reads these slices.
int64_t prompt_tokens_of(const SummaryPlan& plan, std::span<const MappedDocument> documents,
                         std::span<const Slice> slices) {
  int64_t tokens = plan.frame_tokens;
  for (const Slice& slice : slices) {
    tokens += slice.tokens.size() + beside_tokens(documents[slice.document]);
  }
  return tokens;
}

// What all plans have in common.
SummaryPlan plan_head(std::span<const MappedDocument> documents, const PlanRequest& request) {
  const int64_t frame = request.frame_tokens + kSeamTokens;
  return {.document_tokens = count_tokens(documents),
          .context_size = request.context_size,
          .answer_tokens = request.answer_tokens,
          .frame_tokens = frame,
          .room_tokens = request.context_size - frame - request.answer_tokens,
          .was_asked_to_chunk = request.chunk,
          .longer_context = request.longer_context};
}

bool fits(const PlanRequest& request) {
  return request.whole_prompt_tokens > 0 &&
         request.whole_prompt_tokens + request.answer_tokens <= request.context_size;
}

// A document is never cut silently: it fits or the person is told what would.
void refuse(const SummaryPlan& plan, const PlanRequest& request,
            std::span<const MappedDocument> documents) {
  const int64_t prompt =
      request.whole_prompt_tokens > 0
          ? request.whole_prompt_tokens
          : plan.document_tokens + plan.frame_tokens + count_beside_tokens(documents);
  const int64_t needed = prompt + request.answer_tokens;
  throw Error(
      concat("the document does not fit: ", counted(prompt, "token"), " + ", request.answer_tokens,
             " reserved for the summary = ", needed, ", the context holds ", request.context_size),
      needed <= request.model_context_size
          ? concat("-c ", needed, " would hold it, if memory allows")
          : concat("this model holds at most ", counted(request.model_context_size, "token"),
                   "; --on-overflow chunk reads it in parts, a model with a longer context "
                   "at once"));
}

void require_room(const SummaryPlan& plan, int64_t needed, const char* what) {
  if (plan.room_tokens >= needed) return;
  const bool is_instruction_too_long = plan.context_size - plan.frame_tokens < needed;
  throw Error(
      concat("no room for ", what, ": of a context of ", counted(plan.context_size, "token"), ", ",
             plan.frame_tokens, " for the instruction and ", plan.answer_tokens,
             " reserved for the summary leave ", std::max<int64_t>(plan.room_tokens, 0), ", ",
             needed, " are needed"),
      concat(is_instruction_too_long ? "shorten the instruction" : "ask for a shorter summary (-n)",
             plan.longer_context.empty() ? "" : concat(", or take ", plan.longer_context)));
}

SummaryPlan plan_one_pass(SummaryPlan plan, std::span<const MappedDocument> documents,
                          const PlanRequest& request) {
  plan.calls = {whole_slices(documents)};
  plan.call_tokens = {request.whole_prompt_tokens};
  return plan;
}

SummaryPlan plan_without_middle(SummaryPlan plan, std::span<const MappedDocument> documents) {
  plan.kind = SummaryPlan::Kind::kMiddle;
  plan.room_tokens -= kSeamTokens;  // the mark of the gap
  const int64_t beside =
      std::max(beside_tokens(documents.front()), beside_tokens(documents.back()));
  require_room(plan, kLeastChunkTokens + 2 * beside, "the beginning and the end of the document");
  plan.calls = {plan_middle(documents, plan.room_tokens)};
  plan.call_tokens = {prompt_tokens_of(plan, documents, plan.calls.front())};
  return plan;
}

void plan_answers(SummaryPlan& plan, const PlanRequest& request) {
  if (request.has_answer_wish) return;
  const int64_t available = request.context_size - plan.frame_tokens;
  const int64_t wanted = std::max(request.answer_tokens, kUsualAnswerTokens);
  plan.answer_tokens = std::min(wanted, std::max(available / kAnswerPart, kLeastAnswerTokens));
  plan.room_tokens = available - plan.answer_tokens;
}

SummaryPlan plan_in_chunks(SummaryPlan plan, std::span<const MappedDocument> documents,
                           const PlanRequest& request) {
  plan.kind = SummaryPlan::Kind::kChunks;
  plan_answers(plan, request);
  const int64_t wanted = request.chunk_tokens > 0 ? request.chunk_tokens : kUsualChunkTokens;
  for (size_t index = 0; index < documents.size(); ++index) {
    const int64_t beside = beside_tokens(documents[index]);
    const int64_t room = plan.room_tokens - beside;
    require_room(plan, kLeastChunkTokens + beside, "a part of the document");
    ChunkLimits limits = {.max_tokens = std::min(wanted, room)};
    limits.overlap_tokens = std::min(request.overlap.value_or(kUsualOverlapTokens),
                                     limits.max_tokens / (request.overlap ? 4 : 16));
    plan.overlap_tokens = std::max(plan.overlap_tokens, limits.overlap_tokens);
    for (const Slice& chunk : plan_chunks(documents[index], index, limits)) {
      plan.chunk_tokens = std::max(plan.chunk_tokens, chunk.tokens.size());
      plan.calls.push_back({chunk});
      plan.call_tokens.push_back(prompt_tokens_of(plan, documents, plan.calls.back()));
    }
  }
  if (plan.calls.size() == 1) return plan;
  const int64_t text_tokens = plan.answer_tokens + kJoinTokens;
  require_room(plan, 2 * text_tokens, "two summaries to merge");
  plan.merges =
      count_merges(static_cast<int64_t>(plan.calls.size()), text_tokens, plan.room_tokens);
  return plan;
}

}  // namespace

int64_t SummaryPlan::prompt_tokens() const {
  const int64_t read = std::accumulate(call_tokens.begin(), call_tokens.end(), int64_t{0});
  const int64_t merged = merges.calls > 0 ? std::ssize(calls) * answer_tokens : 0;
  return read + merges.calls * frame_tokens + merged;
}

int64_t SummaryPlan::longest_call() const {
  return (call_tokens.empty() ? 0 : std::ranges::max(call_tokens)) + answer_tokens;
}

SummaryPlan make_plan(std::span<const MappedDocument> documents, const PlanRequest& request) {
  SummaryPlan plan = plan_head(documents, request);
  if (request.chunk) return plan_in_chunks(std::move(plan), documents, request);
  if (fits(request)) return plan_one_pass(std::move(plan), documents, request);
  if (request.on_overflow == OnOverflow::kError) refuse(plan, request, documents);
  if (request.on_overflow == OnOverflow::kMiddle) {
    return plan_without_middle(std::move(plan), documents);
  }
  return plan_in_chunks(std::move(plan), documents, request);
}

}  // namespace tessera
