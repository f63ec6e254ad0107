// Files of keys and values, as prefill and /save write them.
#pragma once

#include <optional>
#include <vector>

#include "apps/files/atomic_file.h"
#include "apps/files/conversation.h"
#include "apps/terminal/console.h"
#include "engine/engine.h"

namespace tessera {

// The tokens that the conversation's prompt begins with whatever is asked next: of a conversation
// that ends with a question, those of the prompt for its answer. Throws as Engine::encode_chat
// does.
std::vector<TokenId> opening_tokens(const Engine& engine, const Conversation& conversation,
                                    const ChatInputs& inputs, const Console& console);

struct WrittenKv {
  int64_t num_tokens = 0;
  uint64_t file_bytes = 0;
};

// Makes what the engine has computed of the prompt the file's content, with progress. Nothing, and
// the old file stays, when that is less than a page. Throws Error when writing fails, Interrupted.
std::optional<WrittenKv> write_kv(const Engine& engine, std::span<const TokenId> prompt,
                                  const KvFileOrigin& origin, FileReplacement& file,
                                  const Console& console);

}  // namespace tessera
