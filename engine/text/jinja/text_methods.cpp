// Methods of strings.
#include <algorithm>

#include "engine/text/jinja/builtins.h"
#include "engine/text/jinja/characters.h"
#include "engine/text/jinja/operators.h"
#include "engine/text/jinja/text_operations.h"

namespace tessera::jinja {
namespace {

Value make_list(std::vector<Text> pieces, Runtime& runtime) {
  std::vector<Value> elements;
  for (Text& piece : pieces) elements.push_back(runtime.make(std::move(piece)));
  return runtime.make(std::move(elements));
}

template <Side kSide>
Value method_strip(Call& call) {
  const auto bound = call.bind({"chars"});
  const Text* const characters =
      bound[0] == nullptr || bound[0]->is_none() ? nullptr : &call.text(*bound[0]);
  if (characters != nullptr)
    call.runtime.count_steps(call.text().size() / 64 * (1 + characters->size() / 64));
  return call.runtime.make(stripped(call.text(), characters, kSide));
}

// Pieces between runs of white space, of which the ends of the text have none.
std::vector<Text> split_at_space(const Text& text, int64_t max_count, Runtime& runtime) {
  std::vector<Text> pieces;
  const std::string& bytes = text.bytes();
  runtime.count_text(bytes.size());
  size_t at = 0;
  const auto skip = [&](bool spaces) {
    while (at < bytes.size()) {
      const Character character = character_at(bytes, at);
      if (is_space(character.code_point) != spaces) break;
      at += character.num_bytes;
    }
  };
  for (skip(true); at < bytes.size(); skip(true)) {
    const size_t begin = at;
    runtime.count_elements(2);
    if (max_count >= 0 && static_cast<int64_t>(pieces.size()) == max_count) {
      pieces.push_back(text.slice(begin, bytes.size()));
      break;
    }
    skip(false);
    pieces.push_back(text.slice(begin, at));
  }
  return pieces;
}

std::vector<Text> split_at(const Text& text, const Text& separator, int64_t max_count,
                           Runtime& runtime) {
  std::vector<Text> pieces;
  size_t begin = 0;
  while (max_count < 0 || static_cast<int64_t>(pieces.size()) < max_count) {
    const auto found = find_text(text.bytes(), separator.bytes(), begin, runtime);
    if (!found) break;
    runtime.count_elements(2);
    pieces.push_back(text.slice(begin, *found));
    begin = *found + separator.size();
  }
  pieces.push_back(text.slice(begin, text.size()));
  return pieces;
}

// The last `max_count` separators count.
std::vector<Text> split_from_right(const Text& text, const Text& separator, int64_t max_count,
                                   Runtime& runtime) {
  std::vector<Text> pieces;
  size_t end = text.size();
  while (max_count < 0 || static_cast<int64_t>(pieces.size()) < max_count) {
    const std::string_view rest = std::string_view(text.bytes()).substr(0, end);
    const size_t found = rest.rfind(separator.bytes());
    runtime.count_elements(2);
    const size_t skipped = found == std::string_view::npos ? end : end - found;
    runtime.count_steps(skipped / 64 * (1 + separator.size() / 64));
    if (found == std::string_view::npos) break;
    pieces.push_back(text.slice(found + separator.size(), end));
    end = found;
  }
  pieces.push_back(text.slice(0, end));
  std::ranges::reverse(pieces);
  return pieces;
}

template <bool kFromRight>
Value method_split(Call& call) {
  const auto bound = call.bind({"sep", "maxsplit"});
  const int64_t max_count = bound[1] == nullptr ? -1 : call.integer(*bound[1]);
  if (bound[0] == nullptr || bound[0]->is_none()) {
    if (kFromRight && max_count >= 0) throw call.error("needs a separator");
    return make_list(split_at_space(call.text(), max_count, call.runtime), call.runtime);
  }
  const Text& separator = call.text(*bound[0]);
  if (separator.empty()) throw call.error("the separator is empty");
  return make_list(kFromRight ? split_from_right(call.text(), separator, max_count, call.runtime)
                              : split_at(call.text(), separator, max_count, call.runtime),
                   call.runtime);
}

Value method_splitlines(Call& call) {
  call.bind({});
  return make_list(split_lines(call.text(), call.runtime), call.runtime);
}

Value method_replace(Call& call) {
  const auto bound = call.bind_required({"old", "new", "count"}, 2);
  const int64_t max_count = bound[2] == nullptr ? -1 : call.integer(*bound[2]);
  return call.runtime.make(
      replaced(call.text(), call.text(*bound[0]), call.text(*bound[1]), max_count, call.runtime));
}

// One text or a tuple of them.
template <bool kAtEnd>
Value method_begins(Call& call) {
  const auto bound = call.bind_required({"prefix"}, 1);
  const std::string_view text = call.text().bytes();
  const auto matches = [&](const Value& value) {
    const std::string& part = call.text(value).bytes();
    return kAtEnd ? text.ends_with(part) : text.starts_with(part);
  };
  if (const List* const list = bound[0]->as_list(); list != nullptr && list->is_tuple()) {
    return Value(std::ranges::any_of(list->elements(), matches));
  }
  return Value(matches(*bound[0]));
}

template <bool kAtEnd>
Value method_remove(Call& call) {
  const auto bound = call.bind_required({"part"}, 1);
  const Text& text = call.text();
  const Text& part = call.text(*bound[0]);
  const bool matches =
      kAtEnd ? text.bytes().ends_with(part.bytes()) : text.bytes().starts_with(part.bytes());
  if (!matches) return call.subject();
  return call.runtime.make(kAtEnd ? text.slice(0, text.size() - part.size())
                                  : text.slice(part.size(), text.size()));
}

template <LetterCase kCase>
Value method_case(Call& call) {
  call.bind({});
  return call.runtime.make(with_case(call.text(), kCase, call.runtime));
}

Value method_find(Call& call) {
  const auto bound = call.bind_required({"sub"}, 1);
  const std::string& text = call.text().bytes();
  const auto found = find_text(text, call.text(*bound[0]).bytes(), 0, call.runtime);
  if (!found) return Value(int64_t{-1});
  return Value(static_cast<int64_t>(count_characters(std::string_view(text).substr(0, *found))));
}

Value method_count(Call& call) {
  const auto bound = call.bind_required({"sub"}, 1);
  const Text& part = call.text(*bound[0]);
  if (part.empty()) throw call.error("the text to count is empty");
  int64_t count = 0;
  size_t at = 0;
  while (const auto found = find_text(call.text().bytes(), part.bytes(), at, call.runtime)) {
    at = *found + part.size();
    ++count;
  }
  return Value(count);
}

Value method_join(Call& call) {
  const auto bound = call.bind_required({"iterable"}, 1);
  Text result;
  bool is_first = true;
  for (const Value& element : elements_of(*bound[0], call.runtime)) {
    const Text& text = call.text(element);
    call.runtime.count_text(text.size() + call.text().size());
    if (!is_first) result.append(call.text());
    result.append(text);
    is_first = false;
  }
  return call.runtime.make(std::move(result));
}

Value method_is_space(Call& call) {
  call.bind({});
  const std::string& text = call.text().bytes();
  call.runtime.count_text(text.size());
  return Value(!text.empty() && leading_space(text) == text.size());
}

Value method_is_digit(Call& call) {
  call.bind({});
  const std::string& text = call.text().bytes();
  call.runtime.count_text(text.size());
  bool is_certain = true;
  for (size_t i = 0; i < text.size();) {
    const Character character = character_at(text, i);
    const std::optional<bool> belongs = is_digit(character.code_point);
    if (belongs == false) return Value(false);
    is_certain = is_certain && belongs;
    i += character.num_bytes;
  }
  if (!is_certain) throw call.error("does not know all of these numbers");
  return Value(!text.empty());
}

constexpr Builtin kTextMethods[] = {
    {"strip", method_strip<Side::kBoth>},
    {"lstrip", method_strip<Side::kLeft>},
    {"rstrip", method_strip<Side::kRight>},
    {"split", method_split<false>},
    {"rsplit", method_split<true>},
    {"splitlines", method_splitlines},
    {"replace", method_replace},
    {"startswith", method_begins<false>},
    {"endswith", method_begins<true>},
    {"removeprefix", method_remove<false>},
    {"removesuffix", method_remove<true>},
    {"upper", method_case<LetterCase::kUpper>},
    {"lower", method_case<LetterCase::kLower>},
    {"capitalize", method_case<LetterCase::kCapitalized>},
    {"title", method_case<LetterCase::kTitle>},
    {"format", method_format},
    {"find", method_find},
    {"count", method_count},
    {"join", method_join},
    {"isspace", method_is_space},
    {"isdigit", method_is_digit},
};

}  // namespace

Function find_text_method(std::string_view name) { return find_builtin(kTextMethods, name); }

}  // namespace tessera::jinja
