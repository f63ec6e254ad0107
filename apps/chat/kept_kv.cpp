#include "apps/chat/kept_kv.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "apps/answer/kv_input.h"
#include "apps/answer/kv_output.h"
#include "apps/terminal/human_units.h"
#include "engine/input_files.h"
#include "engine/model_fingerprint.h"

namespace tessera {
namespace {

std::string kv_path(const std::string& path) { return path + ".kv"; }

bool is_file(const std::string& path) {
  std::error_code problem;
  return std::filesystem::is_regular_file(path, problem);
}

// Whether tessera prefill has written it: nothing has been asked in there, and /save keeps no such
// conversation.
bool is_of_prefill(const std::string& path) {
  try {
    return !Conversation::parse(KvFile::open(path).text(), path).has_question();
  } catch (const Error&) {
    return false;
  }
}

// Nobody named FILE.kv: what else has that name is not for /save to replace.
void require_replaceable(const std::string& path) {
  if (!is_file(path)) return;
  CHECK(is_kv_file(path), path, ": is no file of keys and values, and stays as it is");
  CHECK(!is_of_prefill(path), path,
        ": is a file of tessera prefill, and stays as it is; the conversation is kept without its "
        "keys and values");
}

bool holds(const std::string& path, const Conversation& conversation) {
  try {
    return KvFile::open(path).text() == conversation.text();
  } catch (const Error&) {
    return false;
  }
}

// Removes what was kept of another conversation, which FILE held before: it serves no more.
void remove_stale(const std::string& path, const Conversation& conversation) {
  if (!is_file(path) || !is_kv_file(path) || is_of_prefill(path) || holds(path, conversation)) {
    return;
  }
  std::error_code problem;
  std::filesystem::remove(path, problem);
}

// Nothing where there is nothing to keep, also when that is less than a page.
std::optional<WrittenKv> write_computed(ChatSession& session, const std::string& path) {
  const Conversation& conversation = session.conversation();
  if (!conversation.has_question() || !session.engine_options().prefix_cache) return std::nullopt;
  require_replaceable(path);
  const std::vector<TokenId> prompt =
      opening_tokens(session.engine(), conversation, session.inputs(), session.console());
  FileReplacement file(path);
  return write_kv(session.engine(), prompt,
                  {model_fingerprint(session.engine_options()), conversation.text()}, file,
                  session.console());
}

void load_matching(ChatSession& session, const std::string& path) {
  const KvInput kv = open_kv(path, session.engine_options());
  CHECK(kv.opening.text() == session.conversation().text(), path, ": holds another conversation");
  load_kv(session.engine(), kv.file, session.console());
  const std::vector<TokenId> prompt =
      opening_tokens(session.engine(), kv.opening, session.inputs(), session.console());
  compare_with_kv(prompt, kv.file, session.engine(), session.console());
  session.console().say(
      concat("read ", counted(kv.file.header().num_tokens(), "token"), " from ", path));
}

}  // namespace

void save_kv_beside(ChatSession& session, const std::string& path) {
  const std::string kv = kv_path(path);
  const auto written = write_computed(session, kv);
  if (!written) return remove_stale(kv, session.conversation());
  session.console().say(concat(counted(written->num_tokens, "token"), " as computed, ",
                               human_bytes(written->file_bytes), ", to ", kv));
}

void load_kv_beside(ChatSession& session, const std::string& path) {
  if (!session.conversation().has_question() || !session.engine_options().prefix_cache) return;
  const std::string kv = kv_path(path);
  if (!file_exists(kv)) return;
  try {
    load_matching(session, kv);
  } catch (const Error& error) {
    session.console().say(concat(error.what(), "; the conversation is computed anew"));
  }
}

}  // namespace tessera
