#include "kernels/cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/device/recorded_graph.h"
#include "kernels/cuda/transfer/convert.h"
#include "kernels/cuda/transfer/host_copy.h"

namespace tessera {

CudaDevice::CudaDevice(const GpuTraits& gpu) : Device({DeviceType::kCuda, gpu.index}), gpu_(gpu) {}

CudaDevice::Stream CudaDevice::make_stream() {
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

cudaStream_t CudaDevice::stream() const {
  CUDA_CHECK(cudaSetDevice(gpu_.index));
  return stream_.get();
}

std::string CudaDevice::description() const {
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, gpu_.index));
  std::ostringstream stream;
  stream << properties.name << ", sm_" << gpu_.compute_capability << ", " << std::fixed
         << std::setprecision(1) << static_cast<double>(properties.totalGlobalMem) / (1 << 30)
         << " GiB";
  return stream.str();
}

DeviceMemory CudaDevice::memory() const {
  CUDA_CHECK(cudaSetDevice(gpu_.index));
  DeviceMemory memory;
  CUDA_CHECK(cudaMemGetInfo(&memory.free_bytes, &memory.total_bytes));
  return memory;
}

Buffer CudaDevice::allocate(size_t bytes, std::string_view purpose) {
  CUDA_CHECK(cudaSetDevice(gpu_.index));
  return allocate_device_memory(bytes, purpose);
}

void CudaDevice::synchronize() { CUDA_CHECK(cudaStreamSynchronize(stream())); }

std::unique_ptr<Recording> CudaDevice::record(const std::function<void()>& operations) {
  class GraphOnDevice final : public Recording {
   public:
    GraphOnDevice(const CudaDevice& device, RecordedGraph graph)
        : device_(device), graph_(std::move(graph)) {}
    void launch() override { graph_.launch(device_.stream()); }

   private:
    const CudaDevice& device_;
    RecordedGraph graph_;
  };
  CHECK(!stop_points_.has_question(), "operations are recorded while there is a stop question");
  if (launches_serially) return nullptr;
  std::optional<RecordedGraph> graph = RecordedGraph::record(operations, stream());
  if (!graph) return nullptr;
  return std::make_unique<GraphOnDevice>(*this, std::move(*graph));
}

void CudaDevice::upload_parts_impl(std::span<const UploadPart> parts, const ReadPart& read,
                                   const OnPartRead& on_read) {
  CUDA_CHECK(cudaSetDevice(gpu_.index));
  part_uploader_.run(parts, read, on_read);
}

void CudaDevice::upload_impl(const Tensor& destination, const Tensor& source) {
  const auto* const host = static_cast<const std::byte*>(source.data);
  auto* const target = static_cast<std::byte*>(destination.data);
  const size_t in_size = size_of(source.dtype);
  const size_t out_size = size_of(destination.dtype);
  const auto num_elements = static_cast<size_t>(source.num_elements());
  const size_t slot_elements = StagingRing::kSlotBytes / in_size;
  for (size_t begin = 0; begin < num_elements; begin += slot_elements) {
    const size_t count = std::min(slot_elements, num_elements - begin);
    std::byte* const staged = staging_.reserve(count * in_size, stream());
    std::memcpy(staged, host + begin * in_size, count * in_size);
    const bool convert = source.dtype != destination.dtype;
    void* const fetched = convert ? unconverted_.data() : target + begin * out_size;
    CUDA_CHECK(cudaMemcpyAsync(fetched, staged, count * in_size, cudaMemcpyHostToDevice, stream()));
    if (convert) {
      launch_convert(target + begin * out_size, destination.dtype, fetched, source.dtype,
                     static_cast<int64_t>(count), stream());
    }
  }
}

void CudaDevice::upload_inputs_impl(const Tensor& destination, const Tensor& source) {
  const size_t bytes = source.size_bytes();
  if (bytes > kMaxKernelCopyBytes) return upload_impl(destination, source);
  std::byte* const staged = staging_.reserve(bytes, stream());
  std::memcpy(staged, source.data, bytes);
  launch_copy_from_host(destination.data, staged, bytes, stream());
}

void CudaDevice::download_impl(const Tensor& destination, const Tensor& source) {
  auto* const host = static_cast<std::byte*>(destination.data);
  const auto* const device = static_cast<const std::byte*>(source.data);
  const size_t size_bytes = source.size_bytes();
  for (size_t begin = 0; begin < size_bytes; begin += kDownloadBytes) {
    const size_t bytes = std::min(kDownloadBytes, size_bytes - begin);
    CUDA_CHECK(cudaMemcpyAsync(downloaded_.data(), device + begin, bytes, cudaMemcpyDeviceToHost,
                               stream()));
    CUDA_CHECK(cudaStreamSynchronize(stream()));
    std::memcpy(host + begin, downloaded_.data(), bytes);
  }
}

void CudaDevice::start_download_impl(size_t index, const Tensor& source) {
  const StartedDownload& download = started_downloads_[index];
  static_assert(kMaxStartedDownloadBytes <= kMaxKernelCopyBytes);
  launch_copy_to_host(download.memory.data(), source.data, source.size_bytes(), stream());
  CUDA_CHECK(cudaEventRecord(download.arrived.get(), stream()));
}

void CudaDevice::finish_download_impl(size_t index, const Tensor& destination) {
  const StartedDownload& download = started_downloads_[index];
  CUDA_CHECK(cudaSetDevice(gpu_.index));
  CUDA_CHECK(cudaEventSynchronize(download.arrived.get()));
  std::memcpy(destination.data, download.memory.data(), destination.size_bytes());
}

}  // namespace tessera
