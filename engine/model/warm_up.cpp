// The first token of a process would wait for the code of every kernel to be loaded and for the
// matrix library to start: about as long as reading a gigabyte of weights. So a load runs each
// operation once while the weights are still on their way; what they compute does not matter.
#include <algorithm>
#include <array>
#include <numeric>

#include "engine/model/model_runner.h"

namespace tessera {
namespace {

// Long enough for the kernels of long prompts, and as many as short prompts have: products of few
// tokens are computed in another way.
constexpr int64_t kWarmUpTokens = 128;
constexpr int64_t kFewTokens = 16;

std::vector<TokenId> some_tokens(int64_t count, int64_t vocab_size) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(i % vocab_size));
  return tokens;
}

// The first pages, enough for num_tokens.
std::vector<int32_t> first_pages(int64_t num_tokens, int64_t page_size) {
  std::vector<int32_t> pages(static_cast<size_t>(ceil_divide(num_tokens, page_size)));
  std::iota(pages.begin(), pages.end(), 0);
  return pages;
}

}  // namespace

void ModelRunner::warm_up() {
  const int64_t few_tokens = std::min({kFewTokens, limits_.max_tokens, limits_.context_size - 1});
  const int64_t many_tokens =
      std::min({kWarmUpTokens, limits_.max_tokens, limits_.context_size - 1 - few_tokens});
  if (few_tokens < 1) return;
  const int64_t num_tokens = many_tokens + few_tokens + 1;
  const std::vector<TokenId> prompt = some_tokens(num_tokens, config_.vocab_size);
  const std::vector<int32_t> pages = first_pages(num_tokens, page_size_);
  const SamplingParams params;
  // A prompt in two chunks but for its last token, then that token as if it had been generated.
  TokenChunk chunk = {.tokens = prompt, .block_table = pages};
  for (const int64_t size : {many_tokens, few_tokens, int64_t{1}}) {
    if (size == 0) continue;
    chunk.num_tokens = size;
    chunk.sampling = chunk.end() == num_tokens ? &params : nullptr;
    compute({&chunk, 1});
    chunk.begin = chunk.end();
  }
  if (limits_.max_sequences > 1) {
    // Beside a token that the host knows, one that only the device does.
    TokenChunk known = chunk;
    known.begin = num_tokens - 2;
    TokenChunk drawn = chunk;
    drawn.tokens = std::span(prompt).first(prompt.size() - 1);
    drawn.begin = num_tokens - 1;
    drawn.draw_index = 0;
    compute(std::array{known, drawn});
  }
  backend_->device().synchronize();
}

}  // namespace tessera
