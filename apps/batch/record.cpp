#include "apps/batch/record.h"

#include <chrono>
#include <utility>

#include "apps/batch/logprobs.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Made from the line number, so that a resumed batch gives the lines of an uninterrupted one, but
// for the times in them.
OrderedJson record_head(const RecordHead& head) {
  OrderedJson record;
  record["id"] = concat(kRecordIdPrefix, head.item.line_number);
  record["custom_id"] = head.custom_id.empty() ? OrderedJson(nullptr) : OrderedJson(head.custom_id);
  return record;
}

OrderedJson chat_choice(const GenerationResult& result, const ThinkingStart& start) {
  const ThoughtAndAnswer text = split_thinking(result.text, start);
  OrderedJson message = {{"role", "assistant"}, {"content", text.answer}};
  if (!text.thinking.empty()) message["reasoning_content"] = text.thinking;
  return {{"message", message}};
}

OrderedJson choice_json(const PreparedRequest& request, const GenerationResult& result,
                        const Tokenizer& tokenizer) {
  const bool is_chat = request.endpoint == Endpoint::kChatCompletions;
  OrderedJson choice =
      is_chat ? chat_choice(result, request.thinking) : OrderedJson{{"text", result.text}};
  if (request.params.top_logprobs) {
    choice["logprobs"] =
        is_chat ? chat_logprobs(tokenizer, result) : completion_logprobs(tokenizer, result);
  }
  choice["finish_reason"] = finish_reason(result.stop_reason);
  return choice;
}

OrderedJson choices_json(const FinishedRequest& finished, const Tokenizer& tokenizer) {
  OrderedJson choices = OrderedJson::array();
  for (const GenerationResult& result : finished.results) {
    OrderedJson choice = {{"index", choices.size()}};
    choice.update(choice_json(finished.request, result, tokenizer));
    choices.push_back(std::move(choice));
  }
  return choices;
}

// The prompt counts once, however many choices share it, and so does what of it was cached before.
OrderedJson usage_json(const FinishedRequest& finished) {
  const int64_t completion_tokens = finished.generated_tokens();
  const GenerationResult& first = finished.results.front();
  OrderedJson details = {{"cached_tokens", first.cached_prompt_tokens}};
  const int64_t left_out_tokens = finished.request.left_out.num_tokens();
  if (left_out_tokens > 0) details["left_out_tokens"] = left_out_tokens;
  return {{"prompt_tokens", first.prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", first.prompt_tokens + completion_tokens},
          {"prompt_tokens_details", std::move(details)}};
}

// Clients of OpenAI's API want one; it is that of the request, whose only answer this is.
std::string completion_id(const PreparedRequest& request) {
  const bool is_chat = request.endpoint == Endpoint::kChatCompletions;
  return (is_chat ? "chatcmpl-" : "cmpl-") + hexadecimal(request.item.request_digest);
}

int64_t seconds_since_epoch() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

}  // namespace

OrderedJson answer_record(const FinishedRequest& finished, const std::string& model,
                          const Tokenizer& tokenizer) {
  const PreparedRequest& request = finished.request;
  const bool is_chat = request.endpoint == Endpoint::kChatCompletions;
  const OrderedJson body = {{"id", completion_id(request)},
                            {"object", is_chat ? "chat.completion" : "text_completion"},
                            {"created", seconds_since_epoch()},
                            {"model", model},
                            {"choices", choices_json(finished, tokenizer)},
                            {"usage", usage_json(finished)}};
  OrderedJson record = record_head({request.item, request.custom_id});
  record["response"] = {{"status_code", 200},
                        {"request_id", request_id(request.item.request_digest)},
                        {"body", body}};
  record["error"] = nullptr;
  return record;
}

OrderedJson error_record(const RecordHead& head, const std::string& code,
                         const std::string& message) {
  OrderedJson record = record_head(head);
  record["response"] = nullptr;
  record["error"] = {{"code", code}, {"message", message}, {"line", head.item.line_number}};
  return record;
}

}  // namespace tessera
