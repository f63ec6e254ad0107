#include "apps/chat/kept_kv.h"

#include "apps/answer/kv_input.h"
#include "apps/answer/kv_output.h"
#include "apps/terminal/human_units.h"
#include "engine/model_fingerprint.h"

namespace tessera {
namespace {

std::string kv_path(const std::string& path) { return path + ".kv"; }

void load_matching(ChatSession& session, const std::string& path) {
  const KvInput kv = open_kv(path, session.engine_options());
  CHECK(kv.opening.text() == session.conversation().text(), path, ": holds another conversation");
  load_kv(session.engine(), kv.file, session.console());
  session.console().tell(
      concat("read ", counted(kv.file.header().num_tokens(), "token"), " from ", path));
}

}  // namespace

void save_kv_beside(ChatSession& session, const std::string& path) {
  const Conversation& conversation = session.conversation();
  if (!conversation.has_question() || !session.engine_options().prefix_cache) return;
  const std::vector<TokenId> prompt =
      opening_tokens(session.engine(), conversation, session.inputs(), session.console());
  FileReplacement file(kv_path(path));
  const auto written = write_kv(session.engine(), prompt,
                                {model_fingerprint(session.engine_options()), conversation.text()},
                                file, session.console());
  if (!written) return;
  session.console().tell(concat(counted(written->num_tokens, "token"), " as computed, ",
                                human_bytes(written->file_bytes), ", to ", kv_path(path)));
}

void load_kv_beside(ChatSession& session, const std::string& path) {
  if (!session.conversation().has_question() || !session.engine_options().prefix_cache) return;
  try {
    load_matching(session, kv_path(path));
  } catch (const Error& error) {
    session.console().tell(concat(error.what(), "; the conversation is computed anew"));
  }
}

}  // namespace tessera
