// tokenizer.json: our reader, PCRE2 with the regular expressions that it lets through, and texts.
#include "tests/fuzz/encoded_text.h"
#include "tests/fuzz/fuzz_target.h"

namespace tessera {
namespace {

constexpr std::string_view kTexts[] = {"hello world", " <s>he</s>  llo12\r\n▁",
                                       "e\u0301<0x0A>'s  "};

void read(std::string_view bytes) {
  static const MemoryFolder file("tokenizer.json");
  check_tokenizer(file, bytes, kTexts);
}

std::vector<std::string> seeds() {
  return {
      R"({"version":"1.0","added_tokens":[{"id":6,"content":"<s>","special":true}],
"normalizer":{"type":"NFC"},"pre_tokenizer":{"type":"Sequence","pretokenizers":[
{"type":"Split","pattern":{"Regex":"(?i:'s)|\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}]+|\\s+(?!\\S)|\\s+"},
"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,
"use_regex":false}]},"post_processor":{"type":"TemplateProcessing","single":[
{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}]},"decoder":{"type":"ByteLevel"},
"model":{"type":"BPE","ignore_merges":true,"vocab":{"h":0,"e":1,"l":2,"o":3,"ll":4,"Ġw":5},
"merges":[["l","l"]]}})",
      R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},"decoder":{"type":"Sequence",
"decoders":[{"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},"model":{"unk_token":"?",
"byte_fallback":true,"fuse_unk":true,"vocab":{"?":0,"▁":1,"h":2,"e":3,"▁h":4,"<0x0A>":5},
"merges":["▁ h"]}})",
      R"({"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"},
"decoder":{"type":"Metaspace","replacement":"▁"},"model":{"vocab":{"\u2581":0,"o":1},"merges":[]}})",
      R"({"pre_tokenizer":{"type":"Digits"},"decoder":{"type":"Fuse"},"model":{"type":"Unigram",
"vocab":[["a",0.0]]}})",
      R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"NFKC"},{"type":"Lowercase"},
{"type":"StripAccents"},{"type":"Strip"}]},"pre_tokenizer":{"type":"WhitespaceSplit"},
"decoder":{"type":"Fuse"},"model":{"type":"Unigram","unk_id":0,"byte_fallback":true,
"vocab":[["?",0],["h",-2.5],["e",-3e0],["he",-4.25],["<0x0A>",0.0]]}})",
      R"({"decoder":{"type":"Fuse"},"model":{"vocab":{"a":0,"a":1},"merges":[]}})",
      R"({"model":[[[[[)"};
}

}  // namespace

FuzzTarget tokenizer_json_target() {
  return {.name = "tokenizer_json",
          .read = read,
          .seeds = seeds(),
          .dictionary = {"\"vocab\":",
                         "\"merges\":",
                         "\"model\":",
                         "\\ud83d\\ude00",
                         "\\u0061",
                         "\"MergedWithNext\"",
                         "\"NFKD\"",
                         "\"Punctuation\"",
                         "\"unk_id\":",
                         "\"Removed\"",
                         "\"Contiguous\"",
                         "\"invert\":true",
                         "\\\\s",
                         "[^\\\\s]",
                         "(?=",
                         "\\\\p{Lu}",
                         "null",
                         "<0x68>",
                         "\"String\"",
                         "\"Regex\"",
                         "\"use_regex\":true",
                         "2147483647"},
          .max_bytes = 4096};
}

}  // namespace tessera
