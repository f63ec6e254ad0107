#include "apps/summarize/summarize.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "apps/answer/answer.h"
#include "apps/files/atomic_file.h"
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
  std::vector<NamedFile> inputs = files_of_flags(options.engine, "", options.kv_path);
  for (const std::string& file : options.files) inputs.push_back({"the document", file});
  require_separate_files(inputs,
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

std::vector<Document> read_documents(const SummarizeOptions& options, const Console& console) {
  std::vector<Document> documents;
  for (const std::string& file : options.files) {
    std::string text = read_prompt_text(
        file, options.invalid_utf8, [&options] { return find_limit(options); }, console);
    if (is_blank(text)) {
      throw UsageError(options.files.size() == 1 ? "the document is empty"
                                                 : file + ": the document is empty");
    }
    documents.push_back({file == "-" ? "standard input" : file, std::move(text)});
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
  if (options.json) {
    return report_json(report).dump(-1, ' ', /*ensure_ascii=*/true,
                                    nlohmann::ordered_json::error_handler_t::replace) +
           "\n";
  }
  const std::string summary = report.summary();
  // A signal may come before anything has been answered.
  return summary.empty() && !report.is_complete ? "" : summary + "\n";
}

// Writes reports as they come: to standard output at once, to a file when all are done.
class ReportWriter {
 public:
  explicit ReportWriter(const SummarizeOptions& options) : options_(options) {
    if (options.has_output_file()) file_.emplace(options.output_path);
  }

  // Before the summary of one of several documents.
  void begin(const std::string& name) {
    if (options_.json) return;
    put(concat(is_first_ ? "" : "\n", printable(name), ":\n\n"));
    is_first_ = false;
  }
  void write(const Report& report) {
    const bool was_shown = options_.streams() && report.plan.kind != SummaryPlan::Kind::kChunks;
    if (!was_shown) put(report_text(report, options_));
  }
  void finish() {
    if (file_) file_->commit();
  }

 private:
  void put(const std::string& text) {
    if (file_) return file_->write(text);
    print_generated(text);
  }

  const SummarizeOptions& options_;
  std::optional<FileReplacement> file_;
  bool is_first_ = true;
};

// Whether all summaries became one, for each of the documents.
bool summarize_each(Summarizer& summarizer, std::vector<Document> documents, ReportWriter& writer) {
  bool all_merged = true;
  for (Document& document : documents) {
    if (is_interrupted()) break;
    writer.begin(document.name);
    const Report report = summarizer.summarize({std::move(document)});
    writer.write(report);
    all_merged = all_merged && report.is_merged;
  }
  return all_merged;
}

bool summarize_together(Summarizer& summarizer, std::vector<Document> documents,
                        ReportWriter& writer) {
  const Report report = summarizer.summarize(std::move(documents));
  writer.write(report);
  return report.is_merged;
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
  Summarizer summarizer(*engine, options, stats, console);
  const bool apart = options.each && documents.size() > 1;
  const bool all_merged = apart ? summarize_each(summarizer, std::move(documents), writer)
                                : summarize_together(summarizer, std::move(documents), writer);
  writer.finish();
  throw_if_interrupted();
  return all_merged ? kExitOk : kExitItemErrors;
}

}  // namespace tessera
