// Working memory of the CPU operations, kept from call to call so that a step allocates nothing
// once every size has been seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace tessera {

// A block that grows to the largest size asked for. It begins with a cache line, so that a matrix
// whose rows are whole lines has no row that begins and ends within one.
class ScratchBlock {
 public:
  // `count` elements, until the next call. Not initialised.
  template <typename T>
  T* get(int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (size_bytes_ < bytes) {
      data_.reset(new (std::align_val_t{kAlignment}) std::byte[bytes]);
      size_bytes_ = bytes;
    }
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  static constexpr size_t kAlignment = 64;
  struct Release {
    void operator()(std::byte* data) const {
      ::operator delete[](data, std::align_val_t{kAlignment});
    }
  };
  std::unique_ptr<std::byte[], Release> data_;
  size_t size_bytes_ = 0;
};

class ThreadScratch {
 public:
  explicit ThreadScratch(int num_threads) : blocks_(static_cast<size_t>(num_threads)) {}

  // `count` elements that are the own of `thread`, as ThreadPool numbers it, until its next call.
  // Not initialised.
  template <typename T>
  T* get(int thread, int64_t count) {
    return blocks_[static_cast<size_t>(thread)].get<T>(count);
  }

 private:
  std::vector<ScratchBlock> blocks_;
};

}  // namespace tessera
