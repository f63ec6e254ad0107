#include "engine/text/jinja_chat_template.h"

#include <algorithm>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

using jinja::Origin;
using jinja::Value;

jinja::Text template_text(std::string_view text) { return {text, Origin::kTemplate}; }

// What the files call bos_token, eos_token and unk_token; a model without the first two has them
// from its tokenizer.
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
  return tokens;
}

Value value_of(const Message& message) {
  jinja::Dict dict;
  dict.set(template_text("role"), Value::trusted(to_string(message.role)));
  dict.set(template_text("content"), Value::data(message.content));
  return Value(std::move(dict));
}

template <typename Work>
auto with_path(const std::string& path, const std::string& hint, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(concat(path, ": ", error.what()), hint, error.where());
  }
}

}  // namespace

JinjaChatTemplate::JinjaChatTemplate(std::string_view source, const JinjaSurroundings& surroundings,
                                     const Tokenizer& tokenizer)
    : path_(surroundings.path),
      hint_(surroundings.hint),
      special_variables_(named_tokens(surroundings.config, tokenizer)),
      special_tokens_(tokenizer.special_tokens()),
      template_(with_path(path_, hint_, [&] { return jinja::Template(source); })) {}

jinja::Dict JinjaChatTemplate::variables(std::span<const Message> messages) const {
  jinja::Dict variables = special_variables_;
  std::vector<Value> values;
  for (const Message& message : messages) values.push_back(value_of(message));
  variables.set(template_text("messages"), Value(jinja::List(std::move(values))));
  variables.set(template_text("tools"), Value());
  variables.set(template_text("documents"), Value());
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

std::vector<Segment> JinjaChatTemplate::render(std::span<const Message> messages) const {
  const jinja::Text text =
      with_path(path_, hint_, [&] { return template_.render(variables(messages)); });
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
