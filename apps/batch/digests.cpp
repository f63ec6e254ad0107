#include "apps/batch/digests.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ostream>
#include <streambuf>
#include <utility>

#include "apps/options/sampling_json.h"
#include "apps/process/signals.h"
#include "engine/text/sha256.h"

namespace tessera {
namespace {

constexpr std::string_view kRequestPrefix = "req_";

// What is written to it goes into a digest. Throws Interrupted on Ctrl-C: a request may have tens
// of megabytes.
class DigestBuffer : public std::streambuf {
 public:
  std::string digits() { return digest_.digits(); }

 private:
  static constexpr uint64_t kBytesBetweenPauses = uint64_t{1} << 20;

  int_type overflow(int_type character) override {
    const char byte = traits_type::to_char_type(character);
    xsputn(&byte, 1);
    return character;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    digest_.add({text, static_cast<size_t>(size)});
    bytes_since_pause_ += static_cast<uint64_t>(size);
    if (bytes_since_pause_ >= kBytesBetweenPauses) {
      bytes_since_pause_ = 0;
      throw_if_interrupted();
    }
    return size;
  }

  Sha256 digest_;
  uint64_t bytes_since_pause_ = 0;
};

// Of content.dump(), which is never held as a whole.
std::string digest_of(const nlohmann::json& content) {
  DigestBuffer buffer;
  std::ostream stream(&buffer);
  stream.exceptions(std::ios::badbit);  // lets what the buffer throws through
  stream << content;
  return buffer.digits();
}

// With what a message has: JSON in it as text.
nlohmann::json message_json(const Message& message) {
  nlohmann::json object = {{"role", to_string(message.role)}, {"content", nullptr}};
  if (message.has_content) object["content"] = message.content;
  const std::pair<const char*, const std::string*> texts[] = {
      {"reasoning_content", &message.reasoning},
      {"tool_calls", &message.tool_calls},
      {"tool_call_id", &message.tool_call_id},
      {"name", &message.name}};
  for (const auto& [key, text] : texts) {
    if (!text->empty()) object[key] = *text;
  }
  return object;
}

void add_chat(const BatchRequest& request, nlohmann::json& content) {
  content["messages"] = nlohmann::json::array();
  for (const Message& message : request.messages) {
    content["messages"].push_back(message_json(message));
  }
  if (!request.inputs.tools.empty()) content["tools"] = request.inputs.tools;
  for (const auto& [name, json] : request.inputs.arguments) {
    content["chat_template_kwargs"][name] = json;
  }
}

}  // namespace

std::string hexadecimal(uint64_t number) {
  std::array<char, kHexadecimalDigits + 1> digits;
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return digits.data();
}

uint64_t hexadecimal_number(std::string_view digits) {
  uint64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, number, 16);
  const bool is_number =
      digits.size() == kHexadecimalDigits && stop == end && problem == std::errc();
  return is_number ? number : 0;
}

IdDigest digest_of_id(const std::string& custom_id) {
  const std::string digits = sha256(custom_id);
  return {.high = hexadecimal_number(std::string_view(digits).substr(0, kHexadecimalDigits)),
          .low = hexadecimal_number(
              std::string_view(digits).substr(kHexadecimalDigits, kHexadecimalDigits))};
}

uint64_t digest_of_request(const BatchRequest& request) {
  nlohmann::json content = {{"custom_id", request.custom_id},
                            {"sampling", sampling_json(request.sampling)}};
  if (request.endpoint == Endpoint::kChatCompletions) {
    add_chat(request, content);
  } else {
    std::visit([&](const auto& prompt) { content["prompt"] = prompt; }, request.prompt);
  }
  if (request.num_choices != 1) content["n"] = request.num_choices;
  if (request.logprobs) content["top_logprobs"] = request.top_logprobs;
  const std::string digits = digest_of(content);
  return std::max<uint64_t>(
      hexadecimal_number(std::string_view(digits).substr(0, kHexadecimalDigits)), 1);
}

std::string request_id(uint64_t digest) {
  return std::string(kRequestPrefix) + hexadecimal(digest);
}

uint64_t digest_in_request_id(const std::string& request_id) {
  if (!request_id.starts_with(kRequestPrefix)) return 0;
  return hexadecimal_number(std::string_view(request_id).substr(kRequestPrefix.size()));
}

}  // namespace tessera
