// Whether two names lead to one file.
#pragma once

#include <string>
#include <vector>

namespace tessera {

struct NamedFile {
  std::string name;  // what messages call it: "the document", "--output"
  std::string path;  // "" and "-" are no files

  bool is_file() const { return !path.empty() && path != "-"; }
};

// Throws UsageError "NAME and NAME are the same file: PATH" when an output is an input or another
// output: one would replace the other.
void require_separate_files(const std::vector<NamedFile>& inputs,
                            const std::vector<NamedFile>& outputs);

}  // namespace tessera
