// /var/lib/benchsand/records: the records of containers, which stay when the container is gone.
//
// CONTAINERID.json is the newest record of a container, CONTAINERID~N.json an older one: it was started more than once, and of
// those the highest N is the latest. Names of containers stand in the records; there is no other index that could disagree.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "oci/record_list.h"
#include "oci/runtime_settings.h"
#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kRecordBase = "/var/lib/benchsand/records";

struct FoundRecord {
  std::string path;
  std::vector<std::string> notes;  // what else was meant, perhaps
};

class RecordStore {
 public:
  // 0700, root's, never a symbolic link. open() makes what is not there; find() does not.
  static Result<RecordStore> open(const std::string& base = kRecordBase);
  static Result<RecordStore> find(const std::string& base = kRecordBase);

  // A record of the same run takes the other's place, one of another run is set aside. The whole record under its name, or an error and no trace of it. One process at a time; the path is returned.
  Result<std::string> store(const nlohmann::json& record, const std::string& container) const;
  // Removes what is beyond the number or older than the days, oldest first, and never the newest. How many went.
  Result<std::uint64_t> rotate(const RecordKeeping& keeping) const;

  // By the id of the run; by the container's id, by its name, or by the beginning of an id (four characters at least); `~N` after it is an older one. Kind usage when there is none or no single one.
  Result<FoundRecord> look_up(const std::string& wanted) const;
  Result<std::vector<RecordLine>> list() const;  // newest first

 private:
  struct File {
    std::string stem, id;  // "ID~2", "ID"
    std::uint64_t modified_ns = 0;
  };
  struct Whose {
    std::string id;
    std::vector<std::string> notes;
  };
  static Result<RecordStore> opened(const std::string& base);
  Result<std::vector<File>> files() const;  // newest first
  Result<Fd> locked() const;
  Result<void> put(const std::string& text, const std::string& container, const nlohmann::json& run) const;
  Result<bool> is_of_run(const std::string& container, const nlohmann::json& run) const;
  Result<void> set_aside(const std::string& container) const;
  Result<Whose> whose(const std::vector<File>& files, const std::string& wanted) const;
  Result<std::optional<FoundRecord>> of_run(const std::vector<File>& files, const std::string& run) const;
  Result<FoundRecord> newest(const std::vector<File>& files, const std::string& id) const;
  Result<std::vector<std::string>> ids_named(const std::vector<File>& files, const std::string& name) const;
  std::string path_of(const std::string& stem) const { return base_ + "/" + stem + ".json"; }

  std::string base_;
  Fd dir_;
};

// What `benchsand verdict` is given: a path, a folder of results, a container, or a run, whose folder may be where results go if
// nobody says otherwise.
Result<FoundRecord> find_record(const std::string& wanted, const std::string& base = kRecordBase);

}  // namespace benchsand
