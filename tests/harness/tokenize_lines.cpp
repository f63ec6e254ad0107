// Tokenises for compare_tokenizers.py: reads texts, each as four bytes of length and UTF-8, writes
// for each how many tokens it has, their ids, how many bytes they decode to, and these.
//
//     tokenize_lines TOKENIZER_JSON
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"
#include "kernels/tensor/check.h"

namespace {

bool read_text(std::string& text) {
  uint32_t size = 0;
  if (!std::cin.read(reinterpret_cast<char*>(&size), sizeof(size))) return false;
  text.resize(size);
  std::cin.read(text.data(), size);
  return true;
}

void write_size(size_t size) {
  const auto value = static_cast<uint32_t>(size);
  std::cout.write(reinterpret_cast<const char*>(&value), sizeof(value));
}

void run(const std::string& path) {
  tessera::ModelFolder folder;
  folder.tokenizer_path = path;
  folder.config.vocab_size = 4'000'000;
  const auto tokenizer = tessera::Tokenizer::load(folder);
  for (std::string text; read_text(text);) {
    const std::vector<tessera::TokenId> tokens = tokenizer->encode(text);
    tessera::TextStream stream(*tokenizer);
    std::string decoded;
    for (const tessera::TokenId token : tokens) decoded += stream.append(token);
    decoded += stream.finish();
    CHECK(decoded == tokenizer->decode(tokens), "streamed text is not the decoded text");
    write_size(tokens.size());
    std::cout.write(reinterpret_cast<const char*>(tokens.data()),
                    static_cast<std::streamsize>(tokens.size() * sizeof(tokens[0])));
    write_size(decoded.size());
    std::cout << decoded;
  }
  std::cout.flush();
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  if (argc != 2) return 1;
  try {
    run(argv[1]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
