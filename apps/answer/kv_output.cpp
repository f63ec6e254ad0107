#include "apps/answer/kv_output.h"

#include <algorithm>

#include "apps/answer/answer.h"
#include "apps/terminal/progress_bar.h"

namespace tessera {

std::vector<TokenId> opening_tokens(const Engine& engine, const Conversation& conversation,
                                    const ChatInputs& inputs, const Console& console) {
  ProgressBar bar(console, "tokenising");
  const auto encode = [&](std::span<const Message> more) {
    return engine.encode_chat(conversation.continued(more), inputs, interruptible(bar));
  };
  if (conversation.ends_with_question()) return encode({});
  // Unlike beginnings of a question: what they have in common does not depend on the question.
  const Message word = {Role::kUser, "A"};
  const Message mark = {Role::kUser, "?"};
  std::vector<TokenId> tokens = encode({&word, 1});
  const std::vector<TokenId> others = encode({&mark, 1});
  tokens.erase(std::ranges::mismatch(tokens, others).in1, tokens.end());
  return tokens;
}

std::optional<WrittenKv> write_kv(const Engine& engine, std::span<const TokenId> prompt,
                                  const KvFileOrigin& origin, FileReplacement& file,
                                  const Console& console) {
  ProgressBar bar(console, "writing keys and values");
  WrittenKv written;
  const auto write = [&](std::string_view bytes) {
    file.write(bytes);
    written.file_bytes += bytes.size();
  };
  written.num_tokens = engine.save_kv(prompt, origin, write, interruptible(bar));
  if (written.num_tokens == 0) return std::nullopt;
  file.commit();
  return written;
}

}  // namespace tessera
