// tekken.json: our reader, PCRE2 with the regular expressions that it lets through, and texts.
#include "tests/fuzz/encoded_text.h"
#include "tests/fuzz/fuzz_target.h"

namespace tessera {
namespace {

constexpr std::string_view kTexts[] = {"hello world", " <s>he</s>  llo12\r\n", "e\u0301's  "};

void read(std::string_view bytes) {
  static const MemoryFolder file("tekken.json");
  check_tokenizer(file, bytes, kTexts);
}

std::vector<std::string> seeds() {
  return {
      R"({"config":{"pattern":"\\p{L}+|\\p{N}| ?[^\\s\\p{L}]+|\\s+","default_vocab_size":9,
"default_num_special_tokens":3,"version":"v3"},"vocab":[{"rank":0,"token_bytes":"aA==",
"token_str":"h"},{"rank":1,"token_bytes":"ZQ==","token_str":"e"},{"rank":2,"token_bytes":"bA=="},
{"rank":3,"token_bytes":"aGU="},{"rank":4,"token_bytes":"bGw="},{"token_bytes":"aGVsbA==",
"rank":5},{"rank":6,"token_bytes":"IA=="}]})",
      R"({"vocab":[{"rank":0,"token_bytes":"bA=="},{"rank":1,"token_bytes":"bGw="},
{"rank":2,"token_bytes":"bGxs"}],"special_tokens":[{"rank":1,"token_str":"<s>","is_control":true},
{"rank":0,"token_str":"</s>"}],"config":{"pattern":".+","default_vocab_size":5,
"default_num_special_tokens":2}})",
      R"({"config":{"pattern":"a","default_vocab_size":2,"default_num_special_tokens":1},
"vocab":[{"rank":1,"token_bytes":"YQ=="}]})",
      R"({"config":{}})"};
}

}  // namespace

FuzzTarget tekken_json_target() {
  return {.name = "tekken_json",
          .read = read,
          .seeds = seeds(),
          .dictionary = {"\"vocab\":", "\"config\":", "\"rank\":", "\"token_bytes\":",
                         "\"special_tokens\":", "\"token_str\":", "\"pattern\":", "==", "null",
                         "2147483647"},
          .max_bytes = 4096};
}

}  // namespace tessera
