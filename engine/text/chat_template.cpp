#include "engine/text/chat_template.h"

#include <algorithm>

#include "engine/text/chat_template_renderers.h"
#include "engine/text/jinja_chat_template.h"
#include "engine/text/sha256.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/tokenizer_config.h"

namespace tessera {
namespace {

// A template that a renderer reproduces, by the hash of its text without a newline at its end.
// Some are listed twice because they circulate with line feeds in place of \n.
struct KnownTemplate {
  std::string_view hash;
  std::string_view format;
};

constexpr KnownTemplate kKnownTemplates[] = {
    // OpenHermes 2.5
    {"fcf7a096fe99a48fd9ad2b250bf9237e96e8f48bffec1c7ea4d3f225176cd40e", "chatml"},
    {"153280e3ff55d19da1398bdb3914ee2a51b80429bfaedde11d7d216c39db80f3", "chatml"},
    {"a04e64f49487286dc36dd4417bd0b6b0aabd92392f3921c94697bbe14bd1269d", "demo"},
    // Llama 2 Chat
    {"e8d5b5a546d3f19df16a5320c614fab05bdc4edd50e850f1afd947b503ea41cf", "llama2"},
    {"9780fae5bfea3cfd7be37d328c6edfd296a8869be8131495bbe7eb37e780c88c", "llama2"},
    // Llama 3 Instruct
    {"ba03a121d097859c7b5b9cd03af99aafe95275210d2876f642ad9929a150f122", "llama3"},
    {"4f46ecd43418f216df8c26936c60e5d04bcc81db47db5d86fbe889f64212dd4c", "llama3"},
    // Llama 3 Instruct, first version
    {"b48c47f6443892716176eb200bf4ef108f64e06ca26ed0fa8ebc0a4b3992fcb2", "llama3"},
    // Mistral 7B Instruct 0.1, 0.2
    {"26a59556925c987317ce5291811ba3b7f32ec4c647c400c6cc7e3a9993007ba7", "mistral-v1"},
    // Zephyr 7B, TinyLlama Chat
    {"66291cf0045c2425a3a667cf3cbb7af2b11f09e025c02f97245323ab79119362", "zephyr"},
};

std::string joined_names() {
  std::string joined;
  for (const std::string& name : ChatTemplate::names()) {
    joined += concat(joined.empty() ? "" : ", ", name);
  }
  return joined;
}

// Whether choose() takes it for a file: a name counts first.
bool is_file(const std::string& choice) {
  return std::ranges::count(ChatTemplate::names(), choice) == 0 && file_exists(choice);
}

std::string hint_for_choosing() {
  return concat("choose one with --chat-template NAME (", joined_names(),
                ") or send plain text with --raw");
}

// Throws Error with the hint for what is wrong with the template, now or when it runs.
std::shared_ptr<const JinjaChatTemplate> load_jinja(std::string_view source,
                                                    const std::string& path,
                                                    const ModelFolder& folder,
                                                    const Tokenizer& tokenizer) {
  return std::make_shared<const JinjaChatTemplate>(
      source, JinjaSurroundings{path, hint_for_choosing(), folder.tokenizer}, tokenizer);
}

// Turns segments into tokens. Neighbouring texts are tokenised as one: to the model they always
// were.
class SegmentEncoder {
 public:
  SegmentEncoder(const Tokenizer& tokenizer, const std::string& template_name,
                 const EncodeProgress& progress)
      : tokenizer_(tokenizer), template_name_(template_name), progress_(progress) {}

  std::vector<TokenId> encode(std::span<const Segment> segments) {
    for (const Segment& segment : segments) {
      if (segment.kind == Segment::Kind::kText) total_bytes_ += segment.content.size();
    }
    for (const Segment& segment : segments) {
      if (segment.kind == Segment::Kind::kText) {
        text_ += segment.content;
      } else {
        add_special_token(segment.content);
      }
    }
    finish_text(std::nullopt);
    add_prompt_prefix();
    return std::move(tokens_);
  }

 private:
  void add_special_token(const std::string& content) {
    const auto token = tokenizer_.special_token(content);
    CHECK(token, tokenizer_.path(), ": has no special token '", content,
          "', which the chat template ", template_name_, " needs");
    finish_text(token);
    tokens_.push_back(*token);
    strips_left_of_text_ = tokenizer_.strips_right(*token);
  }

  // Tokenises the text gathered so far, which `next` follows.
  void finish_text(std::optional<TokenId> next) {
    constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";
    std::string_view text = text_;
    if (strips_left_of_text_) {
      text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
    }
    if (next && tokenizer_.strips_left(*next)) {
      text = text.substr(0, text.find_last_not_of(kWhiteSpace) + 1);
    }
    const std::vector<TokenId> encoded =
        tokenizer_.encode(text, tokens_.empty(), [this](uint64_t bytes, uint64_t) {
          if (progress_) progress_(done_bytes_ + bytes, total_bytes_);
        });
    tokens_.insert(tokens_.end(), encoded.begin(), encoded.end());
    done_bytes_ += text_.size();
    text_.clear();
  }

  void add_prompt_prefix() {
    const std::vector<TokenId>& prefix = tokenizer_.prompt_prefix();
    if (prefix.empty() || (!tokens_.empty() && tokens_.front() == prefix.front())) return;
    tokens_.insert(tokens_.begin(), prefix.begin(), prefix.end());
  }

  const Tokenizer& tokenizer_;
  const std::string& template_name_;
  const EncodeProgress& progress_;
  uint64_t done_bytes_ = 0;   // of all texts
  uint64_t total_bytes_ = 0;  // of all texts
  std::vector<TokenId> tokens_;
  std::string text_;
  bool strips_left_of_text_ = false;
};

}  // namespace

ChatTemplate ChatTemplate::by_name(std::string_view name) {
  for (const ChatFormat& format : chat_formats()) {
    if (format.name == name) return ChatTemplate(format);
  }
  throw Error(concat("unknown chat template '", name, "'; there are ", joined_names()));
}

ChatTemplate ChatTemplate::for_folder(const ModelFolder& folder, const Tokenizer& tokenizer) {
  if (!folder.tokenizer.chat_template) {
    throw Error(concat(folder.path, ": the model has no chat template"), hint_for_choosing());
  }
  // Jinja ignores a newline at the end of a template, which files have and JSON strings do not.
  std::string_view text = *folder.tokenizer.chat_template;
  if (text.ends_with('\n')) text.remove_suffix(1);
  const std::string hash = sha256(text);
  for (const KnownTemplate& known : kKnownTemplates) {
    if (known.hash == hash) return by_name(known.format);
  }
  return ChatTemplate(load_jinja(*folder.tokenizer.chat_template, folder.path, folder, tokenizer));
}

ChatTemplate ChatTemplate::from_file(const std::string& path, const ModelFolder& folder,
                                     const Tokenizer& tokenizer) {
  return ChatTemplate(
      load_jinja(read_whole_file(path, kMaxChatTemplateBytes), path, folder, tokenizer));
}

ChatTemplate ChatTemplate::choose(const std::string& choice, const ModelFolder& folder,
                                  const Tokenizer& tokenizer) {
  if (choice.empty()) return for_folder(folder, tokenizer);
  return is_file(choice) ? from_file(choice, folder, tokenizer) : by_name(choice);
}

std::string ChatTemplate::fingerprint(const std::string& choice) {
  if (!is_file(choice)) return by_name(choice).name();
  return concat("sha256:", sha256(read_whole_file(choice, kMaxChatTemplateBytes)));
}

std::vector<std::string> ChatTemplate::names() {
  std::vector<std::string> names;
  for (const ChatFormat& format : chat_formats()) names.push_back(format.name);
  return names;
}

const std::string& ChatTemplate::name() const {
  static const std::string jinja = "jinja";
  return format_ == nullptr ? jinja : format_->name;
}

std::vector<Segment> ChatTemplate::render(std::span<const Message> messages) const {
  CHECK(!messages.empty(), "a conversation needs at least one message");
  return format_ == nullptr ? jinja_->render(messages) : format_->render(messages);
}

std::vector<TokenId> ChatTemplate::encode(const Tokenizer& tokenizer,
                                          std::span<const Message> messages,
                                          const EncodeProgress& progress) const {
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto invalid = find_invalid_utf8(messages[i].content);
    CHECK(!invalid, "message ", i + 1, " is not UTF-8 at byte ", invalid.value_or(0));
  }
  return SegmentEncoder(tokenizer, name(), progress).encode(render(messages));
}

std::vector<TokenId> ChatTemplate::stop_tokens(const Tokenizer& tokenizer) const {
  std::vector<TokenId> tokens;
  if (format_ == nullptr) return tokens;
  for (const std::string& content : format_->stop_tokens) {
    if (const auto token = tokenizer.special_token(content)) tokens.push_back(*token);
  }
  return tokens;
}

}  // namespace tessera
