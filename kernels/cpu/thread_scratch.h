// Working memory of the CPU operations, kept from call to call so that a step allocates nothing
// once every size has been seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace tessera {

class ThreadScratch {
 public:
  explicit ThreadScratch(int num_threads) : blocks_(static_cast<size_t>(num_threads)) {}

  // `count` elements that are the own of `thread`, as ThreadPool numbers it, until its next call.
  // Not initialised.
  template <typename T>
  T* get(int thread, int64_t count) {
    Block& block = blocks_[static_cast<size_t>(thread)];
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (block.size_bytes < bytes) {
      block.data.reset(new (std::align_val_t{kAlignment}) std::byte[bytes]);
      block.size_bytes = bytes;
    }
    return reinterpret_cast<T*>(block.data.get());
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Release {
    void operator()(std::byte* data) const {
      ::operator delete[](data, std::align_val_t{kAlignment});
    }
  };
  struct Block {
    std::unique_ptr<std::byte[], Release> data;
    size_t size_bytes = 0;
  };
  std::vector<Block> blocks_;
};

}  // namespace tessera
