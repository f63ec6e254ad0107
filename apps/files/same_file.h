// Whether two names lead to one file.
#pragma once

#include <string>

namespace tessera {

// Throws UsageError "WHAT are the same file: NAME" when both are files and one: one would replace
// the other. "" and "-" are no files.
void require_separate_files(const std::string& left, const std::string& right,
                            const std::string& what);

}  // namespace tessera
