// The conversation formats that --chat-template knows by name, for models that come without one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct BuiltInTemplate {
  std::string_view name;
  std::string source;                            // Jinja
  std::vector<std::string_view> special_tokens;  // a tokenizer without them has another format
};

// In the order of their names.
std::span<const BuiltInTemplate> built_in_templates();

}  // namespace tessera
