// Where tests find the files that they read: tests/golden/data, weights/demo.
#pragma once

#include <filesystem>
#include <initializer_list>

namespace tessera {

// The first of the folders beside `executable`'s own folder (an archive of `make dist` has bin/ and
// tests/ side by side, a build folder lies within the sources) and `built_in` that holds the tests'
// data. `built_in`, where the test was compiled, may be gone or another version by now.
inline std::filesystem::path find_source_folder(const std::filesystem::path& executable,
                                                const std::filesystem::path& built_in) {
  for (const auto& folder : {executable.parent_path().parent_path(), built_in}) {
    if (std::filesystem::exists(folder / "tests" / "golden" / "data")) return folder;
  }
  return built_in;
}

inline std::filesystem::path source_folder() {
  return find_source_folder(std::filesystem::read_symlink("/proc/self/exe"), TESSERA_SOURCE_DIR);
}

}  // namespace tessera
