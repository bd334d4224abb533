// DIR/ID: record.json, stdout, stderr, output/, SHA256SUMS. It is DIR/.ID.partial until all of it is there.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "oci/record.h"
#include "shim/sys.h"

namespace benchsand {

struct Rootfs;
struct Input;

// Results must not lie in what a candidate can read: the next one would find the answers of the one before. Compared by
// identity, for a symbolic link gives a directory another name. DIR need not exist yet and is not made. Kind usage.
Result<void> require_results_apart(const std::string& directory, const Rootfs& rootfs,
                                   const std::vector<Input>& inputs);

class ResultFolder {
 public:
  // Makes DIR and knows the names in it; make() then makes the folder itself, once its name has been noted for gc. Without DIR
  // it lies where only root comes, and is never finished.
  static Result<ResultFolder> plan(const std::optional<std::string>& directory, const std::string& id);
  bool kept() const { return kept_; }
  Result<void> make();
  const std::string& base() const { return base_; }
  std::string partial_path() const { return base_ + "/" + partial_name(id_); }
  std::string path() const { return kept_ ? base_ + "/" + id_ : ""; }
  const Fd& dir() const { return dir_; }
  Result<Fd> create_stream(const std::string& name) const;  // stdout, stderr
  Result<Fd> output() const;                                // the empty directory for collect_outputs
  // Writes record and sums, syncs, and gives the folder its name. Only then does the run have a result.
  Result<void> finish(const nlohmann::json& record, const RunFacts& run) const;
  // The two halves, for who has the second done by another process.
  Result<void> write(const nlohmann::json& record, const RunFacts& run) const;
  Result<void> publish() const;

  // Of a run that came to no container: nothing in its streams and its output.
  Result<void> write_unstarted(const nlohmann::json& record);

  static std::string partial_name(const std::string& id) { return "." + id + ".partial"; }

 private:
  Result<void> write_files(const nlohmann::json& record, const RunFacts& run) const;
  std::string base_, id_;
  Fd base_dir_, dir_;
  bool kept_ = true;
};

// Another record in a folder that is not published yet, and its sum: what was found after it was written.
Result<void> replace_record(const std::string& folder, const nlohmann::json& record);

// One line as sha256sum writes and checks it: names with a backslash, newline or carriage return are escaped.
std::string checksum_line(const std::string& sha256, const std::string& name);

}  // namespace benchsand
