// What an output file of an earlier run holds.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/batch/answers_digest.h"
#include "apps/batch/digests.h"
#include "apps/files/atomic_file.h"

namespace tessera {

struct BatchAnswers {
  // digest_of_request() by digest_of_id(); 0 in files that were written before there was one.
  std::unordered_map<IdDigest, uint64_t> requests;
  AnswersDigest digest;
  std::vector<uint64_t> error_offsets;  // where error records begin, ascending, in bytes
  uint64_t end_bytes = 0;               // of the last whole line
  bool is_torn = false;                 // something follows it

  bool contains(const IdDigest& id) const { return requests.contains(id); }
};

// Reads the file from its beginning. Throws Error when it cannot be read, a line is not a batch
// result, or a request is answered twice.
BatchAnswers read_answers(int descriptor, const std::string& name);

// Copies the lines of the answers alone to `copy`, which is to replace the file.
void copy_answers(int descriptor, const std::string& name, const BatchAnswers& answers,
                  FileReplacement& copy);

}  // namespace tessera
