#include "engine/text/jinja_chat_template.h"

#include <algorithm>

#include "engine/text/jinja/json_value.h"
#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"
#include "model_loaders/strict_json.h"

namespace tessera {
namespace {

using jinja::Origin;
using jinja::Value;

jinja::Text template_text(std::string_view text) { return {text, Origin::kTemplate}; }

// What the files name, such as bos_token and pad_token; a model without bos_token or eos_token has
// them from its tokenizer.
jinja::Dict named_tokens(const TokenizerConfig& config, const Tokenizer& tokenizer) {
  jinja::Dict tokens;
  const auto add = [&](std::string_view name, const std::optional<std::string>& configured,
                       std::optional<TokenId> token) {
    if (configured) {
      tokens.set(template_text(name), Value::trusted(*configured));
    } else if (token) {
      tokens.set(template_text(name), Value::trusted(tokenizer.piece(*token)));
    }
  };
  add("bos_token", config.bos_token, tokenizer.bos_token());
  add("eos_token", config.eos_token, tokenizer.eos_token());
  add("unk_token", config.unk_token, std::nullopt);
  for (const auto& [name, content] : config.other_tokens) add(name, content, std::nullopt);
  return tokens;
}

template <typename Work>
auto with_path(const std::string& path, const std::string& hint, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(concat(path, ": ", error.what()), hint, error.where());
  }
}

Value json_value(const std::string& json, const std::string& name, Origin origin) {
  return with_path(printable(name), "",
                   [&] { return jinja::value_of_json(parse_ordered_json(json, {}), origin); });
}

// As Hugging Face passes it on: without what is null, and with an answer's reasoning under a second
// name that some templates read.
Value value_of(const Message& message) {
  jinja::Dict dict;
  if (!message.reasoning.empty()) {
    dict.set(template_text("thinking"), Value::data(message.reasoning));
  }
  dict.set(template_text("role"), Value::trusted(to_string(message.role)));
  if (message.has_content) dict.set(template_text("content"), Value::data(message.content));
  const std::pair<const char*, const std::string*> texts[] = {
      {"reasoning_content", &message.reasoning},
      {"tool_call_id", &message.tool_call_id},
      {"name", &message.name}};
  for (const auto& [name, text] : texts) {
    if (!text->empty()) dict.set(template_text(name), Value::data(*text));
  }
  if (!message.tool_calls.empty()) {
    dict.set(template_text("tool_calls"),
             json_value(message.tool_calls, "tool_calls", Origin::kData));
  }
  return Value(std::move(dict));
}

void add_arguments(jinja::Dict& variables, const std::vector<TemplateArgument>& arguments,
                   Origin origin) {
  for (const TemplateArgument& argument : arguments) {
    for (const char* const taken : {"messages", "tools", "add_generation_prompt"}) {
      CHECK(argument.name != taken, taken, " is not an argument of chat templates");
    }
    variables.set(template_text(argument.name), json_value(argument.json, argument.name, origin));
  }
}

}  // namespace

JinjaChatTemplate::JinjaChatTemplate(std::string_view source, const JinjaSurroundings& surroundings,
                                     const Tokenizer& tokenizer)
    : path_(surroundings.path),
      hint_(surroundings.hint),
      source_(source),
      fixed_variables_(named_tokens(surroundings.config, tokenizer)),
      special_tokens_(tokenizer.special_tokens()),
      template_(with_path(path_, hint_, [&] { return jinja::Template(source); })) {
  fixed_variables_.set(template_text("documents"), Value());
  add_arguments(fixed_variables_, surroundings.arguments, Origin::kTemplate);
}

jinja::Dict JinjaChatTemplate::variables(std::span<const Message> messages,
                                         const ChatInputs& inputs) const {
  jinja::Dict variables = fixed_variables_;
  add_arguments(variables, inputs.arguments, Origin::kData);
  std::vector<Value> values;
  for (const Message& message : messages) values.push_back(value_of(message));
  variables.set(template_text("messages"), Value(jinja::List(std::move(values))));
  variables.set(template_text("tools"),
                inputs.tools.empty() ? Value() : json_value(inputs.tools, "tools", Origin::kData));
  variables.set(template_text("add_generation_prompt"), Value(true));
  return variables;
}

std::string_view JinjaChatTemplate::special_token_of(std::string_view text) const {
  std::string_view longest;
  auto candidate = std::ranges::lower_bound(special_tokens_, text.substr(0, 1));
  for (; candidate != special_tokens_.end() && candidate->front() == text.front(); ++candidate) {
    if (text.starts_with(*candidate) && candidate->size() > longest.size()) longest = *candidate;
  }
  return longest;
}

void JinjaChatTemplate::append_template_text(std::string_view text,
                                             std::vector<Segment>& segments) const {
  size_t begin = 0;  // of the text before the next special token
  const auto append_text = [&](size_t end) {
    if (end == begin) return;
    segments.push_back({Segment::Kind::kText, std::string(text.substr(begin, end - begin))});
  };
  for (size_t i = 0; i < text.size();) {
    const std::string_view token = special_token_of(text.substr(i));
    if (token.empty()) {
      ++i;
      continue;
    }
    append_text(i);
    segments.push_back({Segment::Kind::kSpecialToken, std::string(token)});
    begin = i += token.size();
  }
  append_text(text.size());
}

std::vector<Segment> JinjaChatTemplate::render(std::span<const Message> messages,
                                               const ChatInputs& inputs, const Pause& pause) const {
  const jinja::Dict given = variables(messages, inputs);
  const jinja::Text text = with_path(path_, hint_, [&] { return template_.render(given, pause); });
  std::vector<Segment> segments;
  size_t begin = 0;
  for (const jinja::Text::Run& run : text.runs()) {
    const auto bytes = std::string_view(text.bytes()).substr(begin, run.end - begin);
    if (run.origin == Origin::kTemplate) {
      append_template_text(bytes, segments);
    } else {
      segments.push_back({Segment::Kind::kText, std::string(bytes)});
    }
    begin = run.end;
  }
  return segments;
}

}  // namespace tessera
