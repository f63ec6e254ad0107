// A chat template in Jinja, as models bring them: parsed once, run for every conversation.
//
// The dialect is that of Hugging Face: Jinja2 in a sandbox with trim_blocks, lstrip_blocks, loop
// controls, raise_exception, strftime_now and its tojson. Includes, inheritance and recursive
// loops are not supported.
#pragma once

#include <memory>
#include <string_view>

#include "engine/text/jinja/text.h"
#include "engine/text/jinja/value.h"
#include "model_loaders/pause.h"

namespace tessera::jinja {

class Template {
 public:
  // Throws Error with line and column when `source` is no template, is not UTF-8 or has more than
  // 256 KiB.
  explicit Template(std::string_view source);

  // What the template prints for these variables, with the origin of every byte. Throws Error with
  // line and column for what it calls and does not exist, with its own words where it raises an
  // exception, and when it takes more steps or memory than any honest template.
  Text render(const Dict& variables, const Pause& pause = {}) const;

  // Whether a name in the template, or a whole text in quotes, is `word`.
  bool mentions(std::string_view word) const;

 private:
  struct Program;
  std::shared_ptr<const Program> program_;
};

}  // namespace tessera::jinja
