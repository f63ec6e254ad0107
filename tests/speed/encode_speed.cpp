// Encodes texts and says how long that took, for encode_speed.py. Reads texts, each as four bytes
// of length and UTF-8. Writes a line with the seconds of each repetition, all texts one after the
// other, and then a line for each text with its ids.
//
//     encode_speed TOKENIZER_JSON REPETITIONS
#include <chrono>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"

namespace {

using Ids = std::vector<tessera::TokenId>;

std::vector<std::string> read_texts() {
  std::vector<std::string> texts;
  uint32_t size = 0;
  while (std::cin.read(reinterpret_cast<char*>(&size), sizeof(size))) {
    texts.emplace_back(size, '\0');
    std::cin.read(texts.back().data(), size);
  }
  return texts;
}

// Words that were met before cost less, so that each repetition begins with a tokenizer of its own,
// whose loading is not timed.
double time_once(const tessera::ModelFolder& folder, const std::vector<std::string>& texts,
                 std::vector<Ids>& ids) {
  using Clock = std::chrono::steady_clock;
  const auto tokenizer = tessera::Tokenizer::load(folder);
  ids.clear();
  const auto begin = Clock::now();
  for (const std::string& text : texts) ids.push_back(tokenizer->encode(text));
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

void run(const std::string& path, int repetitions) {
  tessera::ModelFolder folder;
  folder.tokenizer_path = path;
  folder.config.vocab_size = 4'000'000;
  const std::vector<std::string> texts = read_texts();
  std::vector<Ids> ids;
  for (int i = 0; i < repetitions; ++i) std::cout << time_once(folder, texts, ids) << ' ';
  std::cout << '\n';
  for (const Ids& of_text : ids) {
    for (const tessera::TokenId id : of_text) std::cout << id << ' ';
    std::cout << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  if (argc != 3) return 1;
  try {
    run(argv[1], std::stoi(argv[2]));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
