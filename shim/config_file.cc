#include "shim/config_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace benchsand {

Result<ConfigFile> ConfigFile::read(const std::string& path) {
  ConfigFile file;
  std::error_code failed;
  file.path_ = std::filesystem::weakly_canonical(path, failed).string();
  if (failed) return usage("find " + path + ": " + failed.message());
  const auto facts = sys::fstatat(sys::kHere, file.path_, 0);
  if (!facts && facts.error().error_number == ENOENT) return file;
  if (!facts) return std::unexpected(facts.error());
  if (!S_ISREG(facts->st_mode)) return usage("read " + path + ": it is not a regular file");
  file.facts_ = *facts;
  file.text_ = TRY(sys::read_file(sys::kHere, file.path_));
  return file;
}

Result<std::optional<std::string>> ConfigFile::backup() const {
  auto text = sys::read_file(sys::kHere, backup_path());
  if (text) return std::optional(std::move(*text));
  if (text.error().error_number == ENOENT) return std::optional<std::string>();
  return std::unexpected(text.error());
}

Result<void> ConfigFile::write_to(const std::string& path, const std::string& text) const {
  struct stat like {};  // of root
  like.st_mode = 0644;
  const auto written = sys::replace_file_like(path, text, facts_ ? *facts_ : like);
  if (!written) return fault("write " + path + ": " + written.error().message + "; it is as it was");
  return {};
}

Result<void> ConfigFile::keep_backup() const {
  return write_to(backup_path(), text_);
}

Result<void> ConfigFile::write(const std::string& text) const {
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), failed);
  if (failed) return fault("make the folder of " + path_ + ": " + failed.message());
  return write_to(path_, text);
}

Result<void> ConfigFile::remove() const {
  return sys::unlinkat(sys::kHere, path_, 0);
}

Result<void> ConfigFile::remove_backup() const {
  return sys::unlinkat(sys::kHere, backup_path(), 0);
}

}  // namespace benchsand
