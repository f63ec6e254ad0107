// Which kernel computes a matrix product. Plain arithmetic, no CUDA.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

enum class LinearKernel : uint8_t {
  kGemv,    // reads the weights once at memory speed, whatever the number of tokens
  kCublas,  // a tiled matrix product
};

constexpr std::string_view to_string(LinearKernel kernel) {
  return kernel == LinearKernel::kGemv ? "gemv" : "cublas";
}

// The tokens that one tensor-core tile of the GEMV holds; more would read the weights again.
inline constexpr int64_t kGemvMaxTokens = 8;

// Up to 64 tokens, cuBLAS takes the time of 64: 1.8 to 4.2 TB/s of weights on an H200, least for
// the smallest matrices.
constexpr LinearKernel choose_linear_kernel(int64_t num_tokens) {
  return num_tokens <= kGemvMaxTokens ? LinearKernel::kGemv : LinearKernel::kCublas;
}

}  // namespace tessera
