#include "engine/text/built_in_templates.h"

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// Begins formats that have turns of two: an optional system message, then user and assistant in
// turn, the user last. Sets has_system and turns.
constexpr std::string_view kTurnsOfTwo = R"(
{%- set has_system = messages[0].role == 'system' %}
{%- set turns = messages[1:] if has_system else messages %}
{%- for turn in turns %}
  {%- set expected = 'assistant' if loop.index0 % 2 else 'user' %}
  {%- if turn.role != expected %}
    {{- raise_exception('message ' ~ (loop.index + messages | length - turns | length) ~
                        ' is from the ' ~ turn.role ~
                        ' where this chat template needs the ' ~ expected) }}
  {%- endif %}
{%- endfor %}
{%- if turns | length % 2 == 0 %}
  {{- raise_exception('this chat template needs a last message from the user') }}
{%- endif %})";

constexpr std::string_view kNoSystem = R"(
{%- if messages[0].role == 'system' %}
  {{- raise_exception('this chat template has no place for a system message') }}
{%- endif %})";

constexpr std::string_view kChatMl = R"(
{%- for message in messages %}
  {{- '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}
{%- endfor %}
{{- '<|im_start|>assistant\n' }})";

// The format of the model that comes with tessera.
constexpr std::string_view kDemo = R"(
{{- '<s>' }}
{%- for message in messages %}
  {{- '<|' ~ message.role ~ '|>' ~ message.content ~ '<|end|>' }}
{%- endfor %}
{{- '<|assistant|>' }})";

// Trims what it puts together, so that white space inside, around the user's text, stays.
constexpr std::string_view kLlama2 = R"(
{%- for turn in turns %}
  {%- if turn.role == 'assistant' %}
    {{- ' ' ~ turn.content | trim ~ ' </s>' }}
  {%- else %}
    {%- set is_told = loop.first and has_system %}
    {%- set system = '<<SYS>>\n' ~ messages[0].content ~ '\n<</SYS>>\n\n' if is_told else '' %}
    {{- '<s>[INST] ' ~ (system ~ turn.content) | trim ~ ' [/INST]' }}
  {%- endif %}
{%- endfor %})";

constexpr std::string_view kLlama3Turns = R"(
{%- for turn in turns %}
  {{- '<|start_header_id|>' ~ turn.role ~ '<|end_header_id|>\n\n' }}
  {{- turn.content | trim ~ '<|eot_id|>' }}
{%- endfor %}
{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }})";

constexpr std::string_view kLlama3 = R"(
{{- '<|begin_of_text|>' }}
{%- set turns = messages %})";

// The date is the one that the model's own template falls back to: a prompt that changes every day
// could not be reproduced.
constexpr std::string_view kLlama31 = R"(
{{- '<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\n' }}
{{- 'Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n' }}
{%- set has_system = messages[0].role == 'system' %}
{{- (messages[0].content | trim if has_system else '') ~ '<|eot_id|>' }}
{%- set turns = messages[1:] if has_system else messages %})";

// [INST] became a token of its own with the third tokenizer; here it is text.
constexpr std::string_view kMistralV1 = R"(
{{- '<s>' }}
{%- for turn in turns %}
  {%- if turn.role == 'user' %}
    {{- '[INST] ' ~ turn.content ~ ' [/INST]' }}
  {%- else %}
    {{- turn.content ~ '</s>' }}
  {%- endif %}
{%- endfor %})";

// The system message stands in the last turn. With `space` set to ' ' one precedes every content
// and answers are trimmed; Nemo, the same with another tokenizer, does neither.
constexpr std::string_view kMistralV3 = R"(
{{- '<s>' }}
{%- for turn in turns %}
  {%- if turn.role == 'assistant' %}
    {{- space ~ (turn.content | trim if space else turn.content) ~ '</s>' }}
  {%- else %}
    {%- set system = messages[0].content ~ '\n\n' if loop.last and has_system else '' %}
    {{- '[INST]' ~ space ~ system ~ turn.content ~ '[/INST]' }}
  {%- endif %}
{%- endfor %})";

// Mistral's models since Small 3, whose system message has marks of its own. What mistral-common
// gives, without tools and images.
constexpr std::string_view kMistralV7Tekken = R"(
{{- '<s>' }}
{%- if has_system %}
  {{- '[SYSTEM_PROMPT]' ~ messages[0].content ~ '[/SYSTEM_PROMPT]' }}
{%- endif %}
{%- for turn in turns %}
  {%- if turn.role == 'assistant' %}
    {{- turn.content.rstrip(' ') ~ '</s>' }}
  {%- else %}
    {{- '[INST]' ~ turn.content ~ '[/INST]' }}
  {%- endif %}
{%- endfor %})";

// The role markers are text, not tokens.
constexpr std::string_view kZephyr = R"(
{%- for message in messages %}
  {{- '<|' ~ message.role ~ '|>\n' ~ message.content ~ '</s>\n' }}
{%- endfor %}
{{- '<|assistant|>\n' }})";

constexpr std::string_view kSpace = "{%- set space = ' ' %}";
constexpr std::string_view kNoSpace = "{%- set space = '' %}";

}  // namespace

std::span<const BuiltInTemplate> built_in_templates() {
  using Tokens = std::vector<std::string_view>;
  static const Tokens llama3 = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
                                "<|eot_id|>"};
  static const Tokens mistral = {"<s>", "</s>", "[INST]", "[/INST]"};
  static const std::vector<BuiltInTemplate> templates = {
      {"chatml", std::string(kChatMl), {"<|im_start|>", "<|im_end|>"}},
      {"demo", std::string(kDemo), {"<s>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"}},
      {"llama2", concat(kTurnsOfTwo, kLlama2), {"<s>", "</s>"}},
      {"llama3", concat(kLlama3, kLlama3Turns), llama3},
      {"llama3.1", concat(kLlama31, kLlama3Turns), llama3},
      {"mistral-nemo", concat(kNoSpace, kTurnsOfTwo, kMistralV3), mistral},
      {"mistral-v1", concat(kNoSystem, kTurnsOfTwo, kMistralV1), {"<s>", "</s>"}},
      {"mistral-v3", concat(kSpace, kTurnsOfTwo, kMistralV3), mistral},
      {"mistral-v7-tekken",
       concat(kTurnsOfTwo, kMistralV7Tekken),
       {"<s>", "</s>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"}},
      {"zephyr", std::string(kZephyr), {"</s>"}},
  };
  return templates;
}

}  // namespace tessera
