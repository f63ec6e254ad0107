#include "kernels/device.h"

namespace tessera {
namespace {

void check_conversion(DType from, DType to) {
  CHECK(from == to || (from != DType::kInt32 && to != DType::kInt32), "upload cannot convert ",
        to_string(from), " to ", to_string(to));
}

void check_upload(const Tensor& destination, const Tensor& source, DeviceId device) {
  CHECK(destination.device == device && source.device.type == DeviceType::kCpu,
        "upload goes from the host to ", to_string(device));
  CHECK(destination.shape == source.shape, "upload of shape ", source.shape, " to ",
        destination.shape);
  check_conversion(source.dtype, destination.dtype);
}

}  // namespace

void Device::upload(const Tensor& destination, const Tensor& source) {
  check_upload(destination, source, id());
  if (source.num_elements() > 0) upload_impl(destination, source);
}

void Device::upload_inputs(const Tensor& destination, const Tensor& source) {
  check_upload(destination, source, id());
  CHECK(source.dtype == destination.dtype && size_of(source.dtype) == sizeof(int32_t),
        "upload_inputs of ", to_string(source.dtype), " to ", to_string(destination.dtype));
  if (source.num_elements() > 0) upload_inputs_impl(destination, source);
}

void Device::upload_parts(std::span<const UploadPart> parts, const ReadPart& read,
                          const OnPartRead& on_read) {
  for (const UploadPart& part : parts) {
    CHECK(part.destination.device == id() && !part.destination.empty(),
          "a part to upload is not on ", to_string(id()));
    CHECK(part.source_bytes() > 0 && part.source_bytes() <= kMaxUploadPartBytes,
          "a part to upload has ", part.source_bytes(), " bytes, expected 1 to ",
          kMaxUploadPartBytes);
    check_conversion(part.source_dtype, part.destination.dtype);
  }
  if (!parts.empty()) upload_parts_impl(parts, read, on_read);
}

namespace {

void check_download(const Tensor& destination, const Tensor& source, DeviceId device) {
  CHECK(source.device == device && destination.device.type == DeviceType::kCpu,
        "download goes from ", to_string(device), " to the host");
  CHECK(destination.shape == source.shape && destination.dtype == source.dtype, "download of ",
        to_string(source.dtype), source.shape, " to ", to_string(destination.dtype),
        destination.shape);
}

}  // namespace

void Device::download(const Tensor& destination, const Tensor& source) {
  check_download(destination, source, id());
  if (source.num_elements() > 0) download_impl(destination, source);
}

DownloadTicket Device::start_download(const Tensor& source) {
  CHECK(source.device == id() && !source.empty(), "start_download: the source is not on ",
        to_string(id()));
  CHECK(source.size_bytes() <= kMaxStartedDownloadBytes, "start_download of ", source.size_bytes(),
        " bytes, at most ", kMaxStartedDownloadBytes, " are possible");
  CHECK(size_of(source.dtype) == sizeof(int32_t), "start_download of ", to_string(source.dtype));
  const size_t index = next_ticket_ % kStartedDownloads;
  start_download_impl(index, source);
  started_[index] = source;
  return next_ticket_++;
}

void Device::finish_download(const Tensor& destination, DownloadTicket ticket) {
  CHECK(ticket < next_ticket_ && next_ticket_ - ticket <= kStartedDownloads,
        "finish_download: download ", ticket, " of ", next_ticket_, " is not there");
  const size_t index = ticket % kStartedDownloads;
  check_download(destination, started_[index], id());
  finish_download_impl(index, destination);
}

}  // namespace tessera
