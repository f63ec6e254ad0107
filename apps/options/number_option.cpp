#include "apps/options/number_option.h"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <utility>

#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

// Nothing when `text` is not a number from its first to its last character, or too large for one.
template <typename Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, value);
  if (problem != std::errc{} || stopped != end) return std::nullopt;
  return value;
}

template <std::integral Number>
std::optional<Number> number_with_suffix(std::string_view text) {
  if (!text.ends_with('k') && !text.ends_with('K')) return number_in<Number>(text);
  const std::optional<Number> kibis = number_in<Number>(text.substr(0, text.size() - 1));
  Number value{};
  if (!kibis || __builtin_mul_overflow(*kibis, Number{1024}, &value)) return std::nullopt;
  return value;
}

}  // namespace

std::string refusal(const std::string& name, const std::string& allowed, const std::string& text) {
  return concat(name, " must be ", allowed, ", got '", text, "'");
}

template <typename Number>
std::optional<Number> find_number(std::string_view text, const NumberLimits<Number>& limits,
                                  Suffix suffix) {
  std::optional<Number> value = number_in<Number>(text);
  if constexpr (std::integral<Number>) {
    if (suffix == Suffix::kKibi) value = number_with_suffix<Number>(text);
  }
  return value && limits.allow(*value) ? value : std::nullopt;
}

template <typename Number>
Number parse_number(const std::string& name, const std::string& text,
                    const NumberLimits<Number>& limits, Suffix suffix) {
  const std::optional<Number> value = find_number(text, limits, suffix);
  if (!value) throw UsageError(refusal(name, limits.text(), text));
  return *value;
}

template std::optional<int64_t> find_number(std::string_view, const NumberLimits<int64_t>&, Suffix);
template std::optional<uint64_t> find_number(std::string_view, const NumberLimits<uint64_t>&,
                                             Suffix);
template std::optional<double> find_number(std::string_view, const NumberLimits<double>&, Suffix);
template int64_t parse_number(const std::string&, const std::string&, const NumberLimits<int64_t>&,
                              Suffix);
template double parse_number(const std::string&, const std::string&, const NumberLimits<double>&,
                             Suffix);

std::string flag_name(const std::string& flags) {
  const size_t first_end = flags.find(',');
  if (flags.starts_with("--") || first_end == std::string::npos) return flags.substr(0, first_end);
  const size_t second_end = flags.find(',', first_end + 1);
  return flags.substr(0, first_end) + "/" + flags.substr(first_end + 1, second_end - first_end - 1);
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

CLI::Option* add_list(CLI::App& app, const std::string& flags,
                      std::function<void(const std::vector<std::string>& words)> take,
                      const std::string& help) {
  const auto read = [take = std::move(take)](const CLI::results_t& texts) {
    std::vector<std::string> words;
    for (const std::string& text : texts) {
      for (std::string& word : split_at_commas(text)) words.push_back(std::move(word));
    }
    take(words);
    return true;
  };
  return app.add_option(flags, read, help)->expected(-1)->take_all()->option_text("N,...");
}

CLI::Option* add_numbers(CLI::App& app, const std::string& flags, std::vector<int64_t>& target,
                         const NumberLimits<int64_t>& limits, const std::string& help,
                         Suffix suffix) {
  const auto take = [=, &target](const std::vector<std::string>& words) {
    target.clear();
    for (const std::string& word : words) {
      target.push_back(parse_number(flag_name(flags), word, limits, suffix));
    }
  };
  return add_list(app, flags, take, help);
}

}  // namespace tessera
