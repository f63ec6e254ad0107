// What libFuzzer calls. `--target=NAME` says which reader it is for; `--write=FOLDER` only writes
// the seeds and the dictionary of every target there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "kernels/tensor/check.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/oracle.h"

namespace tessera {
namespace {

FuzzTarget g_target;

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

// In libFuzzer's syntax: one quoted word per line, with every byte as \xNN.
std::string dictionary_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += '"';
    for (const char character : word) {
      char escaped[5];
      std::snprintf(escaped, sizeof(escaped), "\\x%02x", static_cast<unsigned char>(character));
      text += escaped;
    }
    text += "\"\n";
  }
  return text;
}

void write_targets(const std::filesystem::path& folder) {
  for (const FuzzTarget& target : fuzz_targets()) {
    for (size_t i = 0; i < target.seeds.size(); ++i) {
      write_file(folder / target.name / concat("seed_", i), target.seeds[i]);
    }
    write_file(folder / (target.name + ".dict"), dictionary_text(target.dictionary));
    std::printf("%s %zu\n", target.name.c_str(), target.max_bytes);
  }
}

void take_argument(std::string_view argument) {
  constexpr std::string_view kTarget = "--target=", kWrite = "--write=";
  if (argument.starts_with(kWrite)) {
    write_targets(argument.substr(kWrite.size()));
    std::exit(0);
  }
  if (!argument.starts_with(kTarget)) return;
  for (const FuzzTarget& target : fuzz_targets()) {
    if (target.name == argument.substr(kTarget.size())) g_target = target;
  }
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerInitialize(int* num_arguments, char*** arguments) {
  for (int i = 1; i < *num_arguments; ++i) tessera::take_argument((*arguments)[i]);
  if (tessera::g_target.read != nullptr) return 0;
  std::fputs("give --target=NAME or --write=FOLDER\n", stderr);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t num_bytes) {
  // Processor time: a machine that is busy with other things, or stops this one, proves nothing.
  const std::clock_t begin = std::clock();
  tessera::run(tessera::g_target, {reinterpret_cast<const char*>(bytes), num_bytes});
  tessera::require(std::clock() - begin < 2 * CLOCKS_PER_SEC,
                   "an input is answered in two seconds");
  return 0;
}
