#include "apps/options/template_options.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/options/number_option.h"
#include "apps/process/exit_codes.h"
#include "engine/engine.h"
#include "engine/input_files.h"
#include "engine/text/utf8.h"

namespace tessera {
namespace {

constexpr const char* kFlag = "--template-arg";
constexpr const char* kGroup = "Prompt";

bool is_name(std::string_view text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kDigits = "0123456789";
  return !text.empty() && kDigits.find(text.front()) == std::string_view::npos &&
         text.find_first_not_of(std::string(kLetters) + std::string(kDigits)) ==
             std::string_view::npos;
}

// JSON as it is; anything else is a string of its characters. JSON that is refused, such as an
// integer of many digits, was not meant to be a string.
std::string json_of(const std::string& name, const std::string& value) {
  try {
    parse_ordered_json(value, {concat(kFlag, ' ', name)});
    return value;
  } catch (const Error& error) {
    if (nlohmann::json::accept(value)) throw UsageError(error.what());
    return nlohmann::json(value).dump();
  }
}

TemplateArgument parse_argument(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || !is_name(std::string_view(text).substr(0, equals))) {
    throw UsageError(refusal(kFlag, "NAME=VALUE", text));
  }
  if (find_invalid_utf8(text)) throw UsageError(concat(kFlag, " is not UTF-8"));
  std::string name = text.substr(0, equals);
  std::string json = json_of(name, text.substr(equals + 1));
  return {std::move(name), std::move(json)};
}

}  // namespace

void add_template_option(CLI::App& app, EngineOptions& options) {
  app.add_option_function<std::vector<std::string>>(
         kFlag,
         [&options](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             options.template_arguments.push_back(parse_argument(text));
           }
         },
         "set a variable of the chat template, e.g. enable_thinking=false; VALUE is JSON,\n"
         "else a string; may be repeated")
      ->option_text("NAME=VALUE")
      ->expected(1)
      ->take_all()
      ->group(kGroup);
}

void add_thinking_options(CLI::App& app, ThinkingOptions& options) {
  CLI::Option* const think = app.add_flag_callback(
      "--think", [&options] { options.thinks = true; },
      "think before answering, where the model's template can ask for that");
  think->group(kGroup);
  app.add_flag_callback(
         "--no-think", [&options] { options.thinks = false; },
         "answer without thinking first, where the model's template can ask for that")
      ->excludes(think)
      ->group(kGroup);
  app.add_flag("--show-thinking", options.is_shown,
               "what the model thinks goes to standard output also where that is no terminal")
      ->group(kGroup);
}

}  // namespace tessera
