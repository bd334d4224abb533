// /run/benchsand/ID: one run's bundle and listener, locked by the benchsand process that owns it.
//
// The lock tells the living from the dead: the kernel drops it when the owner dies, and no process number is trusted.
#pragma once

#include <string>
#include <vector>

#include "shim/sys.h"

namespace benchsand {

inline constexpr const char* kRunBase = "/run/benchsand";
inline constexpr const char* kDelegateCache = "/run/benchsand/delegates";  // digests and versions of delegates
std::string delegate_state(
    const std::string& delegate);  // --root of the delegate; shared, so that its filter cache works

// Where a run's mounts are attached, in the keeper's mount namespace alone: on the host it is always empty. Not below kRunBase,
// which nobody but the host's root may enter, and the root of a run's user namespace is another.
inline constexpr const char* kMountBase = "/run/benchsand-mounts";
inline constexpr const char* kRootfsPlace = "/run/benchsand-mounts/rootfs";

// In the folder of a container's run: its record, should the monitor not live to write one.
inline constexpr const char* kUnfinishedRecord = "unfinished.json";

class RunFolder {
 public:
  // Makes the base and the caches too; 0700, root's, never a symlink.
  static Result<RunFolder> create();
  static Result<RunFolder> create(const std::string& id);  // of a run that has its name already; once
  const std::string& id() const { return id_; }
  std::string path(const std::string& name = "") const;
  const Fd& dir() const { return dir_; }
  Result<Fd> empty() const;       // an empty directory, the lowest layer of every overlay
  Result<Fd> made_layer() const;  // another one, to fill
  // Where the unfinished results will be, so that gc finds them. The note outlives the folder: that the folder is gone is
  // part of the record, and the record is what finishes the results.
  Result<void> note_results(const std::string& partial);
  Result<void> forget_results();
  Result<void> remove() const;

 private:
  std::string id_;
  Fd dir_, lock_, note_;
};

Result<void> make_base_folders();
Result<std::string> new_run_id();
// The note of a run whose results another process finishes than the one that has its folder. Locked: gc leaves them alone.
Result<Fd> note_results_of(const std::string& id, const std::string& partial);
// Whatever the umask is; what is there must be root's, with this mode (0700 or 0711), and no symbolic link.
Result<void> make_root_directory(const std::string& path, mode_t mode);

// Runs of which a folder or a note is left, and nobody holds a lock on either; the locks are held until cleared.
struct DeadRun {
  std::string id;
  std::string partial_results;  // empty: none noted
  Fd folder_lock, note_lock;
};
Result<std::vector<DeadRun>> dead_runs();
// One gc at a time: two would find the same dead runs.
Result<Fd> lock_gc();
Result<void> remove_note(const std::string& id);
Result<std::vector<std::string>> all_runs();  // that have a folder or a note

}  // namespace benchsand
