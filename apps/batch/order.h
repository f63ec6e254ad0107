// The order in which the requests of a batch are begun.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/batch/input.h"

namespace tessera {

// The most tokens of the item's answer, 0 when nobody said: the request, or `max_tokens`, that of
// requests which do not say, 0 for none.
int64_t answer_limit(const BatchItem& item, int64_t max_tokens);

// Places in `items`, those whose answers may be longest first, others in the order of the file. A
// long answer that is begun last would be computed almost alone while the device could do hundreds:
// what is given out last should be short (Graham 1969, longest processing time first).
// `max_tokens` as above; without a limit an answer may go on until the context is full.
std::vector<uint32_t> longest_first(std::span<const BatchItem> items, int64_t max_tokens);

}  // namespace tessera
