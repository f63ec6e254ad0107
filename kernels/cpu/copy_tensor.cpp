#include "kernels/cpu/copy_tensor.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/element_types.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

void convert(const Tensor& destination, const Tensor& source, int64_t begin, int64_t end) {
  with_float_type(destination.dtype, [&]<typename To>() {
    with_float_type(source.dtype, [&]<typename From>() {
      const From* from = source.as<From>();
      std::transform(from + begin, from + end, destination.as<To>() + begin,
                     [](From value) { return from_float<To>(to_float(value)); });
    });
  });
}

}  // namespace

void copy_elements(const Tensor& destination, const Tensor& source, int64_t begin, int64_t end) {
  if (destination.dtype != source.dtype) return convert(destination, source, begin, end);
  const size_t element_bytes = size_of(source.dtype);
  const size_t offset = static_cast<size_t>(begin) * element_bytes;
  std::memcpy(static_cast<std::byte*>(destination.data) + offset,
              static_cast<const std::byte*>(source.data) + offset,
              static_cast<size_t>(end - begin) * element_bytes);
}

void copy_tensor(const Tensor& destination, const Tensor& source, ThreadPool& pool) {
  constexpr int64_t kChunkElements = 1 << 14;
  constexpr double kChunkNanoseconds = kChunkElements * 8 * kNanosecondsPerByte;
  const int64_t num_elements = source.num_elements();
  pool.for_each(ceil_divide(num_elements, kChunkElements), kChunkNanoseconds, [&](int64_t chunk) {
    const int64_t begin = chunk * kChunkElements;
    copy_elements(destination, source, begin, std::min(begin + kChunkElements, num_elements));
  });
}

}  // namespace tessera
