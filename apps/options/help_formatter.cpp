#include "apps/options/help_formatter.h"

#include <algorithm>
#include <set>
#include <vector>

namespace tessera {
namespace {

constexpr size_t kDescriptionWidth = 80;

// "(not with --raw, --kv)"; nothing without options. In alphabetical order, theirs being that of
// addresses.
std::string relation(const std::string& words, const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : options) names.push_back(option->get_name());
  std::ranges::sort(names);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "" : "(" + words + " " + text + ")";
}

bool fits_last_line(const std::string& text, size_t num_more) {
  const size_t line_begin = text.rfind('\n') + 1;  // 0 in the first line
  return text.size() - line_begin + 1 + num_more <= kDescriptionWidth;
}

// `words` behind `text` where there is room for all of them, else in lines of their own.
void append_words(std::string& text, const std::string& words) {
  bool fits = fits_last_line(text, words.size());
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    if (begin > 0) fits = fits_last_line(text, end - begin);
    text += (fits ? ' ' : '\n') + words.substr(begin, end - begin);
    begin = end + 1;
  }
}

}  // namespace

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string& value = option->get_option_text();
  return value.empty() ? "" : " " + value;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required()) append_words(text, "(required)");
  append_words(text, relation("only with", option->get_needs()));
  append_words(text, relation("not with", option->get_excludes()));
  return text;
}

}  // namespace tessera
