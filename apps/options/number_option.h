// Numbers as people type them, in flags and in /set: one reading, one wording of what is refused.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/options.h"

namespace tessera {

// Whether "32k" and "32K" mean 32 * 1024.
enum class Suffix : uint8_t { kNone, kKibi };

// The number that `text` is, or nothing when it is none or outside the limits. `Number` is int64_t,
// uint64_t or double.
template <typename Number>
std::optional<Number> find_number(std::string_view text, const NumberLimits<Number>& limits,
                                  Suffix suffix = Suffix::kNone);

// The same, but throws UsageError "NAME must be ..., got 'TEXT'" instead of giving nothing.
template <typename Number>
Number parse_number(const std::string& name, const std::string& text,
                    const NumberLimits<Number>& limits, Suffix suffix = Suffix::kNone);

// "NAME must be ALLOWED, got 'TEXT'".
std::string refusal(const std::string& name, const std::string& allowed, const std::string& text);

// How errors name the flag that CLI11 knows as "-c,--ctx-size,--max-model-len": "-c/--ctx-size".
std::string flag_name(const std::string& flags);

// Adds a flag with a number. `Target` is a number or an optional one.
template <typename Number, typename Target>
CLI::Option* add_number(CLI::App& app, const std::string& flags, Target& target,
                        const NumberLimits<Number>& limits, const std::string& help,
                        Suffix suffix = Suffix::kNone) {
  const auto read = [=, &target](const CLI::results_t& texts) {
    target = static_cast<Target>(parse_number(flag_name(flags), texts.back(), limits, suffix));
    return true;
  };
  return app.add_option(flags, read, help)->expected(1)->option_text("N");
}

// The words between the commas of `text`: one more than there are commas, some may be empty.
std::vector<std::string> split_at_commas(const std::string& text);

// Adds a flag with one or more words, with commas or spaces between them, 1,2 or 1 2. Given again
// it adds words instead of replacing them.
CLI::Option* add_list(CLI::App& app, const std::string& flags,
                      std::function<void(const std::vector<std::string>& words)> take,
                      const std::string& help);

// The same where the words are numbers.
CLI::Option* add_numbers(CLI::App& app, const std::string& flags, std::vector<int64_t>& target,
                         const NumberLimits<int64_t>& limits, const std::string& help,
                         Suffix suffix = Suffix::kNone);

}  // namespace tessera
