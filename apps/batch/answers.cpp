#include "apps/batch/answers.h"

#include <fcntl.h>

#include <algorithm>

#include "apps/files/line_reader.h"
#include "engine/engine.h"

namespace tessera {
namespace {

// An answer echoes at most the custom_id of a request line, which may grow sixfold by escapes.
constexpr size_t kMaxAnswerBytes = size_t{512} << 20;

// Reads the file again without owning the descriptor.
LineReader reader_of(int descriptor, const std::string& name) {
  return {FileDescriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)), name, kMaxAnswerBytes};
}

struct Result {
  std::optional<std::string> answered_id;  // nothing for an error record
  std::string request_id;
};

Result parse_result(const FileLine& line, const std::string& where) {
  try {
    const JsonObject record = JsonObject::parse(line.text, where);
    CHECK(record.contains("custom_id") && record.contains("error"), where,
          ": custom_id or error is missing");
    if (!record.is_null("error")) return {};
    Result result{record.find_string("custom_id"), ""};
    if (const auto response = record.find_object("response")) {
      result.request_id = response->find_string("request_id").value_or("");
    }
    return result;
  } catch (const Error& error) {
    throw Error(concat(error.what(), ": not a batch result"),
                "--resume needs the output of an earlier run");
  }
}

void add_result(const FileLine& line, const std::string& where, BatchAnswers& answers) {
  const Result result = parse_result(line, where);
  if (!result.answered_id) {
    answers.error_offsets.push_back(line.offset_bytes);
    return;
  }
  const bool is_new = answers.request_ids.emplace(*result.answered_id, result.request_id).second;
  CHECK(is_new, where, ": answers \"", *result.answered_id, "\", which an earlier line does too");
}

}  // namespace

BatchAnswers read_answers(int descriptor, const std::string& name) {
  BatchAnswers answers;
  LineReader reader = reader_of(descriptor, name);
  while (const std::optional<FileLine> line = reader.next()) {
    answers.is_torn = !line->is_terminated;
    if (answers.is_torn) break;
    add_result(*line, concat(name, ':', line->number), answers);
    answers.end_bytes = reader.offset_bytes();
  }
  return answers;
}

void copy_answers(int descriptor, const std::string& name, const BatchAnswers& answers,
                  FileReplacement& copy) {
  LineReader reader = reader_of(descriptor, name);
  while (const std::optional<FileLine> line = reader.next()) {
    if (!line->is_terminated) break;
    if (std::ranges::binary_search(answers.error_offsets, line->offset_bytes)) continue;
    copy.write(line->text + "\n");
  }
}

}  // namespace tessera
