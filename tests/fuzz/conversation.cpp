// A conversation written by /save and read by /load.
#include "apps/files/conversation.h"

#include <algorithm>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/oracle.h"

namespace tessera {
namespace {

bool same(const Message& left, const Message& right) {
  return left.role == right.role && left.content == right.content &&
         left.reasoning == right.reasoning;
}

void read(std::string_view bytes) {
  static const MemoryFolder file("loaded.json");
  file.replace(bytes);
  Conversation conversation = Conversation::load(file.path(), InvalidUtf8::kRefuse);
  for (const Message& message : conversation.messages()) require_utf8(message.content, "a message");

  const std::string saved = file.folder().path("saved.json");
  conversation.save(saved);
  require(std::ranges::equal(conversation.messages(),
                             Conversation::load(saved, InvalidUtf8::kRefuse).messages(), same),
          "a conversation that was saved loads the same");
  // What the commands of a chat do with it.
  conversation.set_system("S");
  require(conversation.system() == "S", "a system message can be set");
  while (conversation.undo()) {
  }
  conversation.clear();
}

std::vector<std::string> seeds() {
  return {
      R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U1"},
          {"role": "assistant", "content": "A1", "reasoning_content": "R"}, {"role": "user", "content": "é\n\u0000"}]})",
      R"({"messages": []})",
      R"({"messages": [{"role": "user", "content": "x", "role": "assistant"}]})",
      R"({"messages": [{"role": "assistant", "content": "x"}]})",
      R"({"messages": [{"role": "\u001b[2J\u202e", "content": "x"}]})",
      R"({"messages": [{"role": "user", "content": 1e999}]})",
      R"({"messages": [{"role": "user"}], "model": -1e400})",
      R"({"messages": {"0": {"role": "user", "content": "x"}}})",
      R"([{"role": "user", "content": "x"}])",
      "\xEF\xBB\xBF{\"messages\": []}\n",
      "{\"messages\": [{\"role\": \"user\", \"content\": \"\xff\"}]}",
      std::string("{\"messages\": []}\0x", 18),
      std::string(500, '['),
  };
}

}  // namespace

FuzzTarget conversation_target() {
  return {"conversation",
          read,
          seeds(),
          {"\"messages\"", "\"role\"", "\"content\"", "\"reasoning_content\"", "\"system\"",
           "\"user\"", "\"assistant\"", "{\"role\": \"user\", \"content\": \"x\"}", "null", "1e999",
           "\\u0000", "\\ud800", "\\u202e", "\xEF\xBB\xBF"}};
}

}  // namespace tessera
