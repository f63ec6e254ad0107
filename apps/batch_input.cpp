#include "apps/batch_input.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

#include "apps/signals.h"
#include "apps/text_input.h"
#include "engine/engine.h"

namespace tessera {
namespace {

constexpr size_t kMaxLineBytes = size_t{64} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

}  // namespace

BatchInput::BatchInput(const std::string& path) : path_(path) {
  struct stat status = {};
  CHECK(stat(path.c_str(), &status) == 0, path, ": ", std::strerror(errno));
  CHECK(S_ISREG(status.st_mode), path, ": must be a regular file: it is read twice");
  file_.open(path, std::ios::binary);
  CHECK(file_, path, ": ", std::strerror(errno));
  int64_t line_number = 0;
  while (std::optional<Line> line = next_line()) {
    throw_if_interrupted();
    ++line_number;
    if (line_number == 1 && line->text.starts_with(kByteOrderMark)) {
      line->text.erase(0, kByteOrderMark.size());
      line->offset_bytes += kByteOrderMark.size();
    }
    if (!is_blank(line->text)) add_item(*line, line_number);
  }
  require_unique_ids();
}

int64_t BatchInput::num_problems() const {
  return std::count_if(items_.begin(), items_.end(),
                       [](const BatchItem& item) { return item.problem.has_value(); });
}

BatchRequest BatchInput::read(const BatchItem& item) {
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(item.offset_bytes));
  if (const std::optional<Line> line = next_line()) {
    auto parsed = parse_batch_request(line->text);
    if (auto* request = std::get_if<BatchRequest>(&parsed)) {
      if (request->custom_id == item.custom_id) return std::move(*request);
    }
  }
  throw Error(concat(path_, ':', item.line_number, ": changed while the batch was running"));
}

std::optional<BatchInput::Line> BatchInput::next_line() {
  Line line;
  const std::streamoff offset = file_.tellg();
  if (offset < 0) return std::nullopt;
  line.offset_bytes = static_cast<uint64_t>(offset);
  std::streambuf& bytes = *file_.rdbuf();
  constexpr int kEnd = std::char_traits<char>::eof();
  int byte = bytes.sbumpc();
  if (byte == kEnd) return std::nullopt;
  for (; byte != kEnd && byte != '\n'; byte = bytes.sbumpc()) {
    if (line.text.size() < kMaxLineBytes) {
      line.text += static_cast<char>(byte);
    } else {
      line.is_too_long = true;
    }
  }
  if (line.text.ends_with('\r')) line.text.pop_back();
  return line;
}

void BatchInput::add_item(const Line& line, int64_t line_number) {
  BatchItem item;
  item.line_number = line_number;
  item.offset_bytes = line.offset_bytes;
  if (line.is_too_long) {
    item.problem = {"", "line_too_long",
                    concat("the line is longer than ", kMaxLineBytes, " bytes")};
  } else {
    auto parsed = parse_batch_request(line.text);
    if (auto* problem = std::get_if<BatchProblem>(&parsed)) {
      item.custom_id = problem->custom_id;
      item.problem = std::move(*problem);
    } else {
      item.custom_id = std::get<BatchRequest>(parsed).custom_id;
    }
  }
  items_.push_back(std::move(item));
}

void BatchInput::require_unique_ids() const {
  std::unordered_map<std::string_view, int64_t> line_by_id;
  for (const BatchItem& item : items_) {
    if (item.custom_id.empty()) continue;
    const auto [known, is_new] = line_by_id.emplace(item.custom_id, item.line_number);
    CHECK(is_new, path_, ':', item.line_number, ": custom_id \"", item.custom_id,
          "\" was already used on line ", known->second);
  }
}

}  // namespace tessera
