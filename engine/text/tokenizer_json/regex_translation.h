// Regular expressions of tokenizer.json, written for Oniguruma, as PCRE2 reads them.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// A pattern for PCRE2 (with UTF and UCP) that matches what `pattern` does. White space is spelled
// out: the libraries disagree on U+180E. So are intervals that a + or ? follows. Throws Error,
// which begins with `where`, for what they read differently (\w, \b, ^, classes in classes, names
// of scripts, letters such as ß where case does not matter ...), although both accept it.
std::string translate_regex(std::string_view pattern, const std::string& where);

}  // namespace tessera
