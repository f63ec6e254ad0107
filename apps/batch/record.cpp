#include "apps/batch/record.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Made from the line number, so that a resumed batch gives the lines of an uninterrupted one.
OrderedJson record_head(const RecordHead& head) {
  OrderedJson record;
  record["id"] = concat("batch_req_", head.item.line_number);
  record["custom_id"] = head.custom_id.empty() ? OrderedJson(nullptr) : OrderedJson(head.custom_id);
  return record;
}

OrderedJson chat_choice(const GenerationResult& result, const ThinkingStart& start) {
  const ThoughtAndAnswer text = split_thinking(result.text, start);
  OrderedJson message = {{"role", "assistant"}, {"content", text.answer}};
  if (!text.thinking.empty()) message["reasoning_content"] = text.thinking;
  return {{"message", message}};
}

OrderedJson choices_json(Endpoint endpoint, std::span<const GenerationResult> results,
                         const ThinkingStart& start) {
  OrderedJson choices = OrderedJson::array();
  for (const GenerationResult& result : results) {
    OrderedJson choice = {{"index", choices.size()}};
    choice.update(endpoint == Endpoint::kChatCompletions ? chat_choice(result, start)
                                                         : OrderedJson{{"text", result.text}});
    choice["finish_reason"] = finish_reason(result.stop_reason);
    choices.push_back(std::move(choice));
  }
  return choices;
}

// The prompt counts once, however many choices share it, and so does what of it was cached before.
OrderedJson usage_json(std::span<const GenerationResult> results) {
  int64_t completion_tokens = 0;
  for (const GenerationResult& result : results) {
    completion_tokens += static_cast<int64_t>(result.tokens.size());
  }
  const GenerationResult& first = results.front();
  return {{"prompt_tokens", first.prompt_tokens},
          {"completion_tokens", completion_tokens},
          {"total_tokens", first.prompt_tokens + completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", first.cached_prompt_tokens}}}};
}

}  // namespace

OrderedJson answer_record(const RecordHead& head, Endpoint endpoint, const std::string& model,
                          std::span<const GenerationResult> results, const ThinkingStart& start) {
  const bool is_chat = endpoint == Endpoint::kChatCompletions;
  const OrderedJson body = {{"object", is_chat ? "chat.completion" : "text_completion"},
                            {"model", model},
                            {"choices", choices_json(endpoint, results, start)},
                            {"usage", usage_json(results)}};
  OrderedJson record = record_head(head);
  record["response"] = {
      {"status_code", 200}, {"request_id", request_id(head.item.request_digest)}, {"body", body}};
  record["error"] = nullptr;
  return record;
}

void add_left_out(const LeftOut& left_out, OrderedJson& record) {
  OrderedJson& details = record["response"]["body"]["usage"]["prompt_tokens_details"];
  details["left_out_tokens"] = left_out.count;
}

OrderedJson error_record(const RecordHead& head, const std::string& code,
                         const std::string& message) {
  OrderedJson record = record_head(head);
  record["response"] = nullptr;
  record["error"] = {{"code", code}, {"message", message}, {"line", head.item.line_number}};
  return record;
}

}  // namespace tessera
