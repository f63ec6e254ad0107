#include "apps/batch/input.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "apps/files/foreign_text.h"
#include "apps/files/spool.h"
#include "apps/files/text_input.h"
#include "engine/engine.h"

namespace tessera {
namespace {

constexpr size_t kMaxRequestBytes = size_t{64} << 20;

using ParsedLine = std::variant<BatchRequest, BatchProblem>;

ParsedLine parse(const FileLine& line) {
  if (!line.is_too_long) return parse_batch_request(line.text);
  return BatchProblem{"", "line_too_long",
                      concat("the line is longer than ", kMaxRequestBytes, " bytes")};
}

uint64_t hash_of(const FileLine& line) { return std::hash<std::string>{}(line.text); }

BatchItem item_of(const FileLine& line, const ParsedLine& parsed) {
  const auto* request = std::get_if<BatchRequest>(&parsed);
  BatchItem item = {.line_number = line.number,
                    .offset_bytes = line.offset_bytes,
                    .line_hash = hash_of(line),
                    .id = digest_of_id(custom_id_of(parsed))};
  if (request != nullptr) {
    item.request_digest = digest_of_request(*request);
    item.max_tokens = request->sampling.max_tokens.value_or(0);
  }
  return item;
}

}  // namespace

const std::string& custom_id_of(const ParsedLine& line) {
  return std::visit([](const auto& parsed) -> const std::string& { return parsed.custom_id; },
                    line);
}

BatchInput::BatchInput(const std::string& path, const Shard& shard)
    : name_(path == "-" ? "standard input" : path),
      reader_(open_seekable(path), name_, kMaxRequestBytes) {
  while (std::optional<FileLine> line = reader_.next()) {
    if (line->number == 1) {
      refuse_foreign_text(std::string_view(line->text).substr(0, kTellingBytes), name_);
      const size_t mark_size = byte_order_mark_size(line->text);
      line->text.erase(0, mark_size);
      line->offset_bytes += mark_size;
    }
    if (!is_blank(line->text)) add_item(*line);
  }
  require_unique_ids();
  if (!shard.is_whole()) keep(shard);
}

int64_t BatchInput::num_problems() const {
  return std::ranges::count_if(items_, &BatchItem::is_problem);
}

ParsedLine BatchInput::read(const BatchItem& item) {
  reader_.seek(item.offset_bytes, item.line_number);
  const std::optional<FileLine> line = reader_.next();
  CHECK(line && hash_of(*line) == item.line_hash, name_, ':', item.line_number,
        ": changed while the batch was running");
  return parse(*line);
}

void BatchInput::add_item(const FileLine& line) {
  const ParsedLine parsed = parse(line);
  items_.push_back(item_of(line, parsed));
  const auto* request = std::get_if<BatchRequest>(&parsed);
  const bool is_chat = request != nullptr && request->endpoint == Endpoint::kChatCompletions;
  has_chats_ = has_chats_ || is_chat;
}

void BatchInput::require_unique_ids() {
  const IdDigest no_name = digest_of_id("");
  // Places in items_, those of one name side by side and in the order of the file.
  std::vector<size_t> order;
  for (size_t index = 0; index < items_.size(); ++index) {
    if (items_[index].id != no_name) order.push_back(index);
  }
  std::ranges::sort(order, {}, [&](size_t index) { return std::pair(items_[index].id, index); });
  size_t again = 0;  // in `order`, of the first item in the file whose name was used before
  for (size_t i = 1; i < order.size(); ++i) {
    const bool is_used = items_[order[i]].id == items_[order[i - 1]].id;
    if (is_used && (again == 0 || order[i] < order[again])) again = i;
  }
  if (again == 0) return;
  const BatchItem& item = items_[order[again]];
  throw Error(concat(name_, ':', item.line_number, ": custom_id \"", custom_id_of(read(item)),
                     "\" was already used on line ", items_[order[again - 1]].line_number));
}

void BatchInput::keep(const Shard& shard) {
  int64_t index = 0;
  std::erase_if(items_, [&](const BatchItem&) { return !shard.contains(index++); });
  items_.shrink_to_fit();
}

}  // namespace tessera
