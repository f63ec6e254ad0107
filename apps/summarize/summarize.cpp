#include "apps/summarize/summarize.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "apps/answer/answer.h"
#include "apps/files/late_replacement.h"
#include "apps/options/common_options.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"
#include "apps/summarize/kv_summary.h"
#include "apps/summarize/one_pass_context.h"
#include "apps/summarize/summarizer.h"
#include "apps/terminal/output.h"
#include "engine/model_description.h"

namespace tessera {
namespace {

void check_files(const SummarizeOptions& options) {
  if (std::ranges::count(options.files, "-") > 1) {
    throw UsageError("standard input can be read only once");
  }
  std::vector<NamedFile> inputs = {{"--kv", options.kv_path}};
  for (const std::string& file : options.files) inputs.push_back({"the document", file});
  require_separate_files(options.engine, std::move(inputs),
                         {{"--output", options.output_path}, {"--stats-json", options.stats_path}});
  if (options.json && !options.has_output_file() && options.stats_path == "-") {
    throw UsageError("--json and --stats-json cannot both go to standard output");
  }
}

// How long a document can be: of any length where it may be read in parts.
TextLimit find_limit(const SummarizeOptions& options) {
  if (options.on_overflow != OnOverflow::kError || options.chunk) return {};
  if (prompt_chooses_context(options.engine)) return {};
  return read_text_limit(options.engine);
}

Document read_document(const std::string& file, const SummarizeOptions& options,
                       const Console& console) {
  FileText read = read_prompt_text(
      file, options.invalid_utf8, [&options] { return find_limit(options); }, console);
  require_text(read.text, file);
  return {input_name(file), std::move(read.text), static_cast<int64_t>(read.offset_bytes)};
}

// With --each a file that cannot be read is told of and costs no other, unless none can.
std::vector<Document> read_documents(const SummarizeOptions& options, const Console& console) {
  std::vector<Document> documents;
  for (size_t i = 0; i < options.files.size(); ++i) {
    try {
      documents.push_back(read_document(options.files[i], options, console));
    } catch (const Error& error) {
      const bool is_last_hope = documents.empty() && i + 1 == options.files.size();
      if (!options.each || is_last_hope) throw;
      console.report(error);
    }
  }
  return documents;
}

// Chunks are computed together where there are any: no token has less than a byte, so that texts of
// few bytes fit whatever their tokens are.
int64_t wanted_sequences(const SummarizeOptions& options, const std::vector<Document>& documents) {
  if (options.chunk) return 0;
  if (options.on_overflow != OnOverflow::kChunk) return 1;
  uint64_t bytes = 0;
  for (const Document& document : documents) bytes += document.text.size();
  const int64_t context = options.engine.context_size > 0
                              ? options.engine.context_size
                              : read_model_folder(options.engine).config.max_position_embeddings;
  return bytes < static_cast<uint64_t>(context) / 2 ? 1 : 0;
}

EngineOptions options_for_documents(const SummarizeOptions& options,
                                    const std::vector<Document>& documents,
                                    const Console& console) {
  EngineOptions engine = options.engine;
  if (prompt_chooses_context(engine) && !options.chunk) {
    engine.context_size = one_pass_context(options, documents, console);
  }
  const bool is_one_pass = engine.context_size != options.engine.context_size;
  engine.max_sequences = is_one_pass ? 1 : wanted_sequences(options, documents);
  return engine;
}

std::string report_text(const Report& report, const SummarizeOptions& options) {
  const std::string summary = report.summary();
  // A signal may come before anything has been answered, and a model may say nothing: that is no
  // content for a file.
  const bool is_no_report = !options.json || (report.was_interrupted && options.has_output_file());
  if (summary.empty() && is_no_report) return "";
  if (!options.json) return summary + "\n";
  return report_json(report).dump(-1, ' ', /*ensure_ascii=*/true,
                                  nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

// Writes reports as they come: to standard output at once, to a file when all are done.
class ReportWriter {
 public:
  explicit ReportWriter(const SummarizeOptions& options) : options_(options) {
    if (options.has_output_file()) file_.emplace(options.output_path);
  }

  // Before the summary of one of several documents, above which its name then stands.
  void begin(const std::string& name) {
    if (options_.json) return;
    header_ = concat(has_text_ ? "\n" : "", printable(name), ":\n\n");
    if (options_.streams()) put("");
  }
  void write(const Report& report) {
    const bool was_shown = options_.streams() && report.plan.kind != SummaryPlan::Kind::kChunks;
    const std::string text = was_shown ? "" : report_text(report, options_);
    if (!text.empty()) put(text);
  }
  // A file in the place of which nothing has come stays as it is.
  void finish(const Console& console) {
    if (!file_) return;
    if (!has_text_) return console.say("nothing was written to " + options_.output_path);
    file_->write(file_text_);
  }

 private:
  void put(const std::string& text) {
    const std::string whole = std::exchange(header_, "") + text;
    has_text_ = true;
    if (!file_) return print_generated(whole);
    file_text_ += whole;
  }

  const SummarizeOptions& options_;
  std::optional<LateReplacement> file_;
  std::string file_text_;
  std::string header_;  // of the text that comes next
  bool has_text_ = false;
};

bool has_all(const Report& report) {
  return report.is_merged && report.num_failed() == 0 && !report.summary().empty();
}

// Does a part of the work for one of several documents. An Error is told and costs no other
// document anything. Returns whether there was none; false also after a signal.
bool attempt(const std::string& name, const Console& console, const std::function<void()>& work) {
  try {
    work();
    return true;
  } catch (const OutputError&) {
    throw;
  } catch (const Error& error) {
    console.report(Error(concat(name, ": ", error.what()), error.hint(), error.where()));
  } catch (const Interrupted&) {  // the signal stays pending
  }
  return false;
}

// Whether the summaries hold all of the documents, each in one.
bool summarize_each(Summarizer& summarizer, std::vector<Document> documents, ReportWriter& writer,
                    const Console& console) {
  bool has_everything = true;
  for (Document& document : documents) {
    if (is_interrupted()) break;
    const std::string name = document.name;
    writer.begin(name);
    std::optional<Report> report;
    attempt(name, console, [&] { report = summarizer.summarize({std::move(document)}); });
    if (report) writer.write(*report);
    const bool was_told = report && attempt(name, console, [&] { summarizer.tell(*report); });
    has_everything = has_everything && was_told && has_all(*report);
  }
  writer.finish(console);
  return has_everything;
}

bool summarize_together(Summarizer& summarizer, std::vector<Document> documents,
                        ReportWriter& writer, const Console& console) {
  const Report report = summarizer.summarize(std::move(documents));
  writer.write(report);
  writer.finish(console);
  summarizer.tell(report);
  return has_all(report);
}

}  // namespace

int run_summarize(const SummarizeOptions& options, const Console& console) {
  check_files(options);
  if (!options.kv_path.empty()) return summarize_kv(options, console);
  std::vector<Document> documents = read_documents(options, console);
  resolve_sampling(options.sampling, {});
  const StatsFile stats(options.stats_path);
  ReportWriter writer(options);

  const std::unique_ptr<Engine> engine =
      load_engine(options_for_documents(options, documents, console), console);
  tell_unused_seed(options.sampling, *engine, console);
  Summarizer summarizer(*engine, options, stats, console);
  const bool apart = options.each && options.files.size() > 1;
  const bool has_every_file = documents.size() == options.files.size();
  const bool has_everything =
      apart ? summarize_each(summarizer, std::move(documents), writer, console)
            : summarize_together(summarizer, std::move(documents), writer, console);
  throw_if_interrupted();
  return has_everything && has_every_file ? kExitOk : kExitItemErrors;
}

}  // namespace tessera
