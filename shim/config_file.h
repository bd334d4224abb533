// A file of an engine that is changed for it: its bytes, and the copy beside it from before the first change.
#pragma once

#include <optional>
#include <string>

#include "shim/sys.h"

namespace benchsand {

class ConfigFile {
 public:
  // An absent file is an empty text. A link is followed: what it names is changed, and the link stays.
  static Result<ConfigFile> read(const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& text() const { return text_; }
  bool exists() const { return facts_.has_value(); }
  std::string backup_path() const { return path_ + ".benchsand-backup"; }
  Result<std::optional<std::string>> backup() const;

  // Each is whole and on the disk, or the old one is still there.
  Result<void> keep_backup() const;
  Result<void> write(const std::string& text) const;
  Result<void> remove() const;
  Result<void> remove_backup() const;

 private:
  Result<void> write_to(const std::string& path, const std::string& text) const;

  std::string path_, text_;
  std::optional<struct stat> facts_;
};

}  // namespace benchsand
