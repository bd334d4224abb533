#include "shim/result_folder.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "oci/sha256.h"
#include "shim/run_folder.h"

namespace benchsand {

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
  const auto written = write_files(record, run);
  if (written) return {};
  return fault("write the results in " + base_ + ": " + written.error().message +
               "; nothing was recorded, so the run has no score");
}

Result<void> ResultFolder::write_files(const nlohmann::json& record, const RunFacts& run) const {
  const std::string text = record.dump(2, ' ', true) + "\n";
  std::vector<std::pair<std::string, std::string>> sums = {
      {"record.json", sha256_hex(text)}, {"stdout", run.stdout_stream.sha256}, {"stderr", run.stderr_stream.sha256}};
  for (const auto& file : run.outputs) sums.emplace_back("output/" + file.path, file.sha256);
  std::sort(sums.begin(), sums.end());
  std::string lines;
  for (const auto& [name, sha256] : sums) lines += checksum_line(sha256, name);

  TRY_VOID(sys::create_file(dir_.get(), "SHA256SUMS", lines, 0644));
  const Fd file = TRY(sys::openat(dir_.get(), "record.json", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644));
  TRY_VOID(sys::write_all(file, text, "record.json"));
  TRY_VOID(sys::fsync(file, "record.json"));
  return sys::renameat(base_dir_.get(), partial_name(id_), id_);
}

}  // namespace benchsand
