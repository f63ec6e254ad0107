#include "apps/batch/record.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

// Made from the line number, so that a resumed batch gives the lines of an uninterrupted one.
OrderedJson record_head(const BatchItem& item) {
  OrderedJson record;
  record["id"] = concat("batch_req_", item.line_number);
  record["custom_id"] = item.custom_id.empty() ? OrderedJson(nullptr) : OrderedJson(item.custom_id);
  return record;
}

}  // namespace

OrderedJson answer_record(const BatchItem& item, const std::string& model,
                          const GenerationResult& result, const ThoughtAndAnswer& text) {
  OrderedJson message = {{"role", "assistant"}, {"content", text.answer}};
  if (!text.thinking.empty()) message["reasoning_content"] = text.thinking;
  const auto completion_tokens = static_cast<int64_t>(result.tokens.size());
  const OrderedJson choice = {
      {"index", 0}, {"message", message}, {"finish_reason", finish_reason(result.stop_reason)}};
  const OrderedJson usage = {{"prompt_tokens", result.prompt_tokens},
                             {"completion_tokens", completion_tokens},
                             {"total_tokens", result.prompt_tokens + completion_tokens}};
  const OrderedJson body = {{"object", "chat.completion"},
                            {"model", model},
                            {"choices", OrderedJson::array({choice})},
                            {"usage", usage}};
  OrderedJson record = record_head(item);
  record["response"] = {{"status_code", 200}, {"request_id", item.request_id}, {"body", body}};
  record["error"] = nullptr;
  return record;
}

OrderedJson error_record(const BatchItem& item, const std::string& code,
                         const std::string& message) {
  OrderedJson record = record_head(item);
  record["response"] = nullptr;
  record["error"] = {{"code", code}, {"message", message}, {"line", item.line_number}};
  return record;
}

}  // namespace tessera
