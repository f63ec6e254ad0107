// The tiny random models of tests/golden/data and what transformers computes with them; made by
// make_golden.py.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "engine/text/tokenizer.h"
#include "kernels/tensor/check.h"
#include "tests/source_folder.h"

namespace tessera {

// A prompt and the greedy answer to it, computed in float32.
struct GoldenRun {
  int64_t prompt_length = 0;
  float scale = 0.0f;                    // largest absolute logit
  std::vector<TokenId> tokens;           // [num_tokens], prompt and answer
  std::vector<TokenId> top_tokens;       // [num_tokens], the likeliest token after each
  std::vector<float> margins;            // [num_tokens], by how much: fraction of `scale`
  std::vector<int32_t> logit_positions;  // positions whose logits are stored
  std::vector<float> logits;             // [logit_positions.size(), vocab_size]

  std::vector<TokenId> prefix(int64_t length) const {
    return {tokens.begin(), tokens.begin() + length};
  }
  std::vector<TokenId> prompt() const { return prefix(prompt_length); }
  std::vector<TokenId> answer() const { return {tokens.begin() + prompt_length, tokens.end()}; }
};

struct Golden {
  int32_t vocab_size = 0;
  std::vector<GoldenRun> runs;  // the first is the longest and has logits
};

inline std::string golden_folder(const std::string& model) {
  return source_folder() / "tests" / "golden" / "data" / model;
}

// golden.dat is little-endian 32-bit values: vocab_size, number of runs, then for each run
// prompt_length, num_tokens, number of logit positions, scale, and the arrays in the order above.
class GoldenReader {
 public:
  explicit GoldenReader(const std::string& path) : file_(path, std::ios::binary) {
    CHECK(file_.is_open(), path, ": cannot be opened");
  }

  Golden read() {
    Golden golden;
    golden.vocab_size = value<int32_t>();
    const auto num_runs = value<int32_t>();
    for (int32_t i = 0; i < num_runs; ++i) golden.runs.push_back(read_run(golden.vocab_size));
    return golden;
  }

 private:
  GoldenRun read_run(int32_t vocab_size) {
    GoldenRun run;
    run.prompt_length = value<int32_t>();
    const auto num_tokens = value<int32_t>();
    const auto num_positions = value<int32_t>();
    run.scale = value<float>();
    run.tokens = values<TokenId>(num_tokens);
    run.top_tokens = values<TokenId>(num_tokens);
    run.margins = values<float>(num_tokens);
    run.logit_positions = values<int32_t>(num_positions);
    run.logits = values<float>(num_positions * vocab_size);
    return run;
  }

  template <typename T>
  std::vector<T> values(int32_t count) {
    std::vector<T> result(static_cast<size_t>(count));
    file_.read(reinterpret_cast<char*>(result.data()),
               static_cast<std::streamsize>(result.size() * sizeof(T)));
    CHECK(file_.good(), "golden.dat is too short");
    return result;
  }
  template <typename T>
  T value() {
    return values<T>(1)[0];
  }

  std::ifstream file_;
};

inline Golden read_golden(const std::string& model) {
  return GoldenReader(golden_folder(model) + "/golden.dat").read();
}

}  // namespace tessera
