#include "shim/result_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "oci/sha256.h"
#include "shim/run_folder.h"

namespace benchsand {

namespace {

constexpr const char *kRecord = "record.json", *kSums = "SHA256SUMS";

std::string record_text(const nlohmann::json& record) {
  return record.dump(2, ' ', true) + "\n";
}

}  // namespace

Result<ResultFolder> ResultFolder::plan(const std::optional<std::string>& wanted, const std::string& id) {
  const std::string directory = wanted.value_or(kRunBase);
  std::error_code failed;
  const auto unusable = [&](const std::string& why) {
    return usage("keep results in '" + directory + "': " + why + "; choose another place with --out");
  };
  std::filesystem::create_directories(directory, failed);
  if (failed) return unusable(failed.message());
  ResultFolder folder;
  folder.id_ = id;
  folder.kept_ = wanted.has_value();
  folder.base_ = std::filesystem::canonical(directory, failed).string();
  if (failed) return unusable(failed.message());
  auto opened = sys::open_directory(sys::kHere, folder.base_);
  if (!opened) return unusable(opened.error().message);
  folder.base_dir_ = std::move(*opened);
  return folder;
}

Result<void> ResultFolder::make() {
  if (const auto made = sys::mkdirat(base_dir_.get(), partial_name(id_), 0755); !made)
    return usage("keep results in " + base_ + ": " + made.error().message + "; choose another place with --out");
  dir_ = TRY(sys::open_directory(base_dir_.get(), partial_name(id_)));
  return sys::mkdirat(dir_.get(), "output", 0755);
}

Result<Fd> ResultFolder::create_stream(const std::string& name) const {
  return sys::openat(dir_.get(), name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
}

Result<Fd> ResultFolder::output() const {
  return sys::open_directory(dir_.get(), "output");
}

std::string checksum_line(const std::string& sha256, const std::string& name) {
  std::string escaped;
  for (const char c : name) {
    if (c == '\\')
      escaped += "\\\\";
    else if (c == '\n')
      escaped += "\\n";
    else if (c == '\r')
      escaped += "\\r";
    else
      escaped += c;
  }
  return (escaped == name ? "" : "\\") + sha256 + "  " + escaped + "\n";
}

Result<void> ResultFolder::finish(const nlohmann::json& record, const RunFacts& run) const {
  TRY_VOID(write(record, run));
  return publish();
}

namespace {

std::unexpected<Error> not_written(const std::string& base, const Error& error) {
  return fault("write the results in " + base + ": " + error.message +
               "; nothing was recorded, so the run has no score");
}

}  // namespace

Result<void> ResultFolder::write(const nlohmann::json& record, const RunFacts& run) const {
  if (const auto written = write_files(record, run); !written) return not_written(base_, written.error());
  return {};
}

Result<void> ResultFolder::publish() const {
  if (const auto named = sys::renameat(base_dir_.get(), partial_name(id_), id_); !named)
    return not_written(base_, named.error());
  return {};
}

Result<void> ResultFolder::write_unstarted(const nlohmann::json& record) {
  TRY_VOID(make());
  RunFacts facts;
  for (const char* stream : {"stdout", "stderr"}) TRY(create_stream(stream));
  facts.stdout_stream.sha256 = facts.stderr_stream.sha256 = sha256_hex("");
  return write(record, facts);
}

Result<void> ResultFolder::write_files(const nlohmann::json& record, const RunFacts& run) const {
  const std::string text = record_text(record);
  std::vector<std::pair<std::string, std::string>> sums = {
      {kRecord, sha256_hex(text)}, {"stdout", run.stdout_stream.sha256}, {"stderr", run.stderr_stream.sha256}};
  for (const auto& file : run.outputs) sums.emplace_back("output/" + file.path, file.sha256);
  std::sort(sums.begin(), sums.end());
  std::string lines;
  for (const auto& [name, sha256] : sums) lines += checksum_line(sha256, name);

  TRY_VOID(sys::create_file(dir_.get(), kSums, lines, 0644));
  const Fd file = TRY(sys::openat(dir_.get(), kRecord, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  TRY_VOID(sys::write_all(file, text, kRecord));
  return sys::fsync(file, kRecord);
}

// The sums first: a record that does not match them is found, one that matched by being the old one is not.
Result<void> replace_record(const std::string& path, const nlohmann::json& record) {
  // Held, for it may be exchanged by whoever owns the folder that it is in.
  const Fd opened = TRY(sys::open_directory(sys::kHere, path));
  const std::string folder = "/proc/self/fd/" + std::to_string(opened.get());
  const std::string sums = TRY(sys::read_file(sys::kHere, folder + "/" + kSums)), text = record_text(record);
  std::string lines;
  bool found = false;
  for (std::size_t start = 0; start < sums.size();) {
    const std::size_t end = std::min(sums.find('\n', start), sums.size() - 1) + 1;
    const std::string line = sums.substr(start, end - start);
    const bool is_records = line.ends_with(std::string("  ") + kRecord + "\n") && line.size() == 64 + 3 + 11;
    lines += is_records ? checksum_line(sha256_hex(text), kRecord) : line;
    found = found || is_records;
    start = end;
  }
  if (!found) return fault("replace the record in " + path + ": " + kSums + " has no line for it");
  TRY_VOID(sys::replace_file(folder + "/" + kSums, lines, 0644));
  return sys::replace_file(folder + "/" + kRecord, text, 0644);
}

}  // namespace benchsand
