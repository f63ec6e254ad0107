// How --help describes a flag.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace tessera {

// As CLI11 does, but what else has to be known of a flag stands behind its description: that it is
// required, and which flags it needs or excludes. CLI11 leaves that out of flags with a text for
// their value, and of two that exclude each other would tell it of those without one.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
  std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace tessera
