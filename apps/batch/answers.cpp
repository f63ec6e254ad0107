#include "apps/batch/answers.h"

#include <fcntl.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/files/line_reader.h"
#include "engine/engine.h"
#include "engine/input_files.h"

namespace tessera {
namespace {

// An answer echoes the custom_id of a request line, which may grow sixfold by escapes; and each
// token of 128 choices may have log-probabilities of a kilobyte.
constexpr size_t kMaxAnswerBytes = size_t{64} << 30;

// Reads the file again without owning the descriptor.
LineReader reader_of(int descriptor, const std::string& name) {
  return {FileDescriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0)), name, kMaxAnswerBytes};
}

using OrderedJson = nlohmann::ordered_json;

const OrderedJson& at(const OrderedJson& object, const char* key, const std::string& where) {
  CHECK(object.is_object() && object.contains(key), where, ": ", key, " is missing");
  return object[key];
}

// Checks what a record of an answer is asked for later.
void check_answer(const OrderedJson& record, const std::string& where) {
  CHECK(record["custom_id"].is_string(), where, ": custom_id is not a string");
  const OrderedJson& response = at(record, "response", where);
  at(at(response, "body", where), "choices", where);
}

[[noreturn]] void refuse_other_file(const std::string& problem) {
  throw Error(problem + ": not a batch result", "--resume needs the output of an earlier run");
}

OrderedJson parse_record(const FileLine& line, const std::string& where) {
  try {
    OrderedJson record = read_record(line.text, where);
    at(record, "custom_id", where);
    if (at(record, "error", where).is_null()) check_answer(record, where);
    return record;
  } catch (const Error& error) {
    refuse_other_file(error.what());
  }
}

// Whether the line can be what is left of a record that was being written. A disk may have given it
// room and no content.
bool can_be_torn_record(std::string_view line) {
  const std::string begin = concat("{\"id\":\"", kRecordIdPrefix);
  return begin.starts_with(line) || line.starts_with(begin) ||
         line.find_first_not_of('\0') == std::string_view::npos;
}

void add_record(const FileLine& line, const std::string& where, BatchAnswers& answers) {
  const OrderedJson record = parse_record(line, where);
  if (!record["error"].is_null()) {
    answers.error_offsets.push_back(line.offset_bytes);
    return;
  }
  const auto custom_id = record["custom_id"].get<std::string>();
  const OrderedJson& response = record["response"];
  const uint64_t request = response.contains("request_id") && response["request_id"].is_string()
                               ? digest_in_request_id(response["request_id"].get<std::string>())
                               : 0;
  const bool is_new = answers.requests.emplace(digest_of_id(custom_id), request).second;
  CHECK(is_new, where, ": answers \"", custom_id, "\", which an earlier line does too");
  answers.digest.add(record);
}

}  // namespace

BatchAnswers read_answers(int descriptor, const std::string& name) {
  BatchAnswers answers;
  LineReader reader = reader_of(descriptor, name);
  while (const std::optional<FileLine> line = reader.next()) {
    const std::string where = concat(name, ':', line->number);
    answers.is_torn = !line->is_terminated;
    // A file that begins with it may be anything, and the line is about to be dropped.
    if (answers.is_torn && line->number == 1 && !can_be_torn_record(line->text)) {
      refuse_other_file(where);
    }
    if (answers.is_torn) break;
    add_record(*line, where, answers);
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
