#include "apps/batch/input.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "apps/files/spool.h"
#include "apps/files/text_input.h"
#include "engine/engine.h"

namespace tessera {
namespace {

constexpr size_t kMaxRequestBytes = size_t{64} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

using ParsedLine = std::variant<BatchRequest, BatchProblem>;

ParsedLine parse(const FileLine& line) {
  if (!line.is_too_long) return parse_batch_request(line.text);
  return BatchProblem{"", "line_too_long",
                      concat("the line is longer than ", kMaxRequestBytes, " bytes")};
}

const std::string& custom_id_of(const ParsedLine& parsed) {
  return std::visit([](const auto& line) -> const std::string& { return line.custom_id; }, parsed);
}

std::string request_id_of(const ParsedLine& parsed) {
  const auto* request = std::get_if<BatchRequest>(&parsed);
  return request == nullptr ? "" : request_id(*request);
}

}  // namespace

BatchInput::BatchInput(const std::string& path)
    : name_(path == "-" ? "standard input" : path),
      reader_(open_seekable(path), name_, kMaxRequestBytes) {
  while (std::optional<FileLine> line = reader_.next()) {
    if (line->number == 1 && line->text.starts_with(kByteOrderMark)) {
      line->text.erase(0, kByteOrderMark.size());
      line->offset_bytes += kByteOrderMark.size();
    }
    if (!is_blank(line->text)) add_item(*line);
  }
  require_unique_ids();
}

int64_t BatchInput::num_problems() const {
  return std::ranges::count_if(items_, &BatchItem::is_problem);
}

ParsedLine BatchInput::read(const BatchItem& item) {
  reader_.seek(item.offset_bytes, item.line_number);
  if (const std::optional<FileLine> line = reader_.next()) {
    ParsedLine parsed = parse(*line);
    const bool is_the_same =
        custom_id_of(parsed) == item.custom_id && request_id_of(parsed) == item.request_id;
    if (is_the_same) return parsed;
  }
  throw Error(concat(name_, ':', item.line_number, ": changed while the batch was running"));
}

void BatchInput::add_item(const FileLine& line) {
  const ParsedLine parsed = parse(line);
  items_.push_back({line.number, line.offset_bytes, custom_id_of(parsed), request_id_of(parsed)});
}

void BatchInput::require_unique_ids() const {
  std::unordered_map<std::string_view, int64_t> line_by_id;
  for (const BatchItem& item : items_) {
    if (item.custom_id.empty()) continue;
    const auto [known, is_new] = line_by_id.emplace(item.custom_id, item.line_number);
    CHECK(is_new, name_, ':', item.line_number, ": custom_id \"", item.custom_id,
          "\" was already used on line ", known->second);
  }
}

}  // namespace tessera
