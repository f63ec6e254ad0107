#include "apps/batch/record.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

// Made from the line number, so that a resumed batch gives the lines of an uninterrupted one.
Json record_head(const BatchItem& item) {
  Json record;
  record["id"] = concat("batch_req_", item.line_number);
  record["custom_id"] = item.custom_id.empty() ? Json(nullptr) : Json(item.custom_id);
  return record;
}

}  // namespace

Json answer_record(const BatchItem& item, const std::string& model,
                   const GenerationResult& result) {
  const auto completion_tokens = static_cast<int64_t>(result.tokens.size());
  const Json choice = {{"index", 0},
                       {"message", {{"role", "assistant"}, {"content", result.text}}},
                       {"finish_reason", finish_reason(result.stop_reason)}};
  const Json usage = {{"prompt_tokens", result.prompt_tokens},
                      {"completion_tokens", completion_tokens},
                      {"total_tokens", result.prompt_tokens + completion_tokens}};
  const Json body = {{"object", "chat.completion"},
                     {"model", model},
                     {"choices", Json::array({choice})},
                     {"usage", usage}};
  Json record = record_head(item);
  record["response"] = {{"status_code", 200}, {"request_id", item.request_id}, {"body", body}};
  record["error"] = nullptr;
  return record;
}

Json error_record(const BatchItem& item, const std::string& code, const std::string& message) {
  Json record = record_head(item);
  record["response"] = nullptr;
  record["error"] = {{"code", code}, {"message", message}, {"line", item.line_number}};
  return record;
}

}  // namespace tessera
