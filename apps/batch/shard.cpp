#include "apps/batch/shard.h"

#include "apps/options/number_option.h"
#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

constexpr NumberLimits<int64_t> kIndexLimits = {0, 99'999};
constexpr NumberLimits<int64_t> kCountLimits = {1, 100'000};

}  // namespace

std::string Shard::text() const { return concat(index, '/', count); }

Shard parse_shard(const std::string& text) {
  const size_t slash = text.find('/');
  const bool is_pair = slash != std::string::npos;
  const auto index = find_number(text.substr(0, slash), kIndexLimits);
  const auto count = is_pair ? find_number(text.substr(slash + 1), kCountLimits) : std::nullopt;
  if (!index || !count || *index >= *count) {
    throw UsageError(refusal("--shard", "I/N, with I in 0..N-1, e.g. 0/4 to 3/4", text));
  }
  return {.index = *index, .count = *count};
}

}  // namespace tessera
