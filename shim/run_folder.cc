#include "shim/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <set>

#include "shim/container_state.h"
#include "shim/host_cgroup.h"

namespace benchsand {

namespace {

constexpr const char* kGate = "/run/benchsand/.gate";
constexpr const char* kGc = "/run/benchsand/.gc";
constexpr const char* kLock = "lock";
constexpr const char* kNote = "results-";
constexpr const char* kEmpty = "empty";
constexpr const char* kLayer = "layer";

std::string note_path(const std::string& id) {
  return std::string(kRunBase) + "/" + kNote + id;
}

Result<Fd> locked(const char* path, bool alone) {
  Fd lock = TRY(sys::openat(sys::kHere, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY_VOID(sys::flock(lock, path, alone));
  return lock;
}

// Creating a folder and locking it are two steps; gc must not look in between. Creators share this lock, gc has it alone.
Result<Fd> pass_gate(bool alone) {
  return locked(kGate, alone);
}

}  // namespace

Result<void> make_root_directory(const std::string& path, mode_t mode) {
  const auto made = sys::mkdirat(sys::kHere, path, mode);
  if (!made && made.error().error_number != EEXIST) return made;
  const Fd dir = TRY(sys::open_directory(sys::kHere, path));
  if (made && ::fchmod(dir.get(), mode) != 0) return sys_error("chmod", path, errno);  // whatever the umask is
  const auto facts = TRY(sys::fstat(dir, path));
  if (facts.st_uid != 0 || (facts.st_mode & 0777) != mode)
    return fault("use " + path + ": it must belong to root with mode 0" + (mode == 0700 ? "700" : "711") +
                 "; remove it");
  return {};
}

std::string delegate_state(const std::string& delegate) {
  return std::string(kRunBase) + "/state-" + delegate;
}

Result<void> make_base_folders() {
  for (const std::string& path : {std::string(kRunBase), std::string(kDelegateCache), std::string(kContainerBase),
                                  delegate_state("crun"), delegate_state("runc")})
    TRY_VOID(make_root_directory(path, 0700));
  return make_root_directory(kMountBase, 0711);
}

Result<std::string> new_run_id() {
  return "r" + TRY(sys::random_hex(12));
}

Result<RunFolder> RunFolder::create() {
  return create(TRY(new_run_id()));
}

Result<RunFolder> RunFolder::create(const std::string& id) {
  if (!is_run_id(id)) return fault("make the folder of a run: '" + id + "' is not the name of a run");
  TRY_VOID(make_base_folders());
  const Fd gate = TRY(pass_gate(false));
  RunFolder folder;
  folder.id_ = id;
  TRY_VOID(sys::mkdirat(sys::kHere, folder.path(), 0700));
  folder.dir_ = TRY(sys::open_directory(sys::kHere, folder.path()));
  folder.lock_ = TRY(sys::openat(folder.dir_.get(), kLock, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (!TRY(sys::try_flock(folder.lock_, folder.path(kLock))))
    return fault("lock " + folder.path(kLock) + ": somebody else has it");
  TRY_VOID(sys::mkdirat(folder.dir_.get(), kEmpty, 0755));
  return folder;
}

std::string RunFolder::path(const std::string& name) const {
  return std::string(kRunBase) + "/" + id_ + (name.empty() ? "" : "/" + name);
}

Result<Fd> RunFolder::empty() const {
  return sys::open_directory(dir_.get(), kEmpty);
}

Result<Fd> RunFolder::made_layer() const {
  TRY_VOID(sys::mkdirat(dir_.get(), kLayer, 0755));
  return sys::open_directory(dir_.get(), kLayer);
}

Result<Fd> note_results_of(const std::string& id, const std::string& partial) {
  const std::string path = note_path(id);
  Fd note = TRY(sys::openat(sys::kHere, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!TRY(sys::try_flock(note, path))) return fault("lock " + path + ": somebody else has it");
  TRY_VOID(sys::write_all(note, partial, path));
  return note;
}

Result<void> RunFolder::note_results(const std::string& partial) {
  note_ = TRY(note_results_of(id_, partial));
  return {};
}

Result<void> RunFolder::forget_results() {
  TRY_VOID(remove_note(id_));
  note_.reset();
  return {};
}

Result<Fd> lock_gc() {
  TRY_VOID(make_base_folders());
  return locked(kGc, true);
}

Result<void> remove_note(const std::string& id) {
  const auto removed = sys::unlinkat(sys::kHere, note_path(id), 0);
  if (!removed && removed.error().error_number != ENOENT) return removed;
  return {};
}

Result<void> RunFolder::remove() const {
  return sys::remove_tree(sys::kHere, path());
}

Result<std::vector<std::string>> all_runs() {
  std::set<std::string> ids;
  if (!TRY(sys::exists(sys::kHere, kRunBase))) return std::vector<std::string>();
  for (const auto& name : TRY(sys::list_directory(sys::kHere, kRunBase))) {
    if (is_run_id(name)) ids.insert(name);
    if (name.starts_with(kNote) && is_run_id(name.substr(std::string(kNote).size())))
      ids.insert(name.substr(std::string(kNote).size()));
  }
  return std::vector<std::string>(ids.begin(), ids.end());
}

namespace {

// False: somebody alive holds it. A file that is not there is held by nobody.
Result<bool> take_lock(const std::string& path, Fd& into) {
  auto lock = sys::openat(sys::kHere, path, O_RDWR | O_NOFOLLOW);
  if (!lock && lock.error().error_number == ENOENT) return true;
  if (!lock) return std::unexpected(lock.error());
  into = std::move(*lock);
  return sys::try_flock(into, path);
}

}  // namespace

Result<std::vector<DeadRun>> dead_runs() {
  std::vector<DeadRun> dead;
  if (!TRY(sys::exists(sys::kHere, kRunBase))) return dead;
  const Fd gate = TRY(pass_gate(true));
  for (const auto& id : TRY(all_runs())) {
    DeadRun run{id, "", Fd(), Fd()};
    if (!TRY(take_lock(std::string(kRunBase) + "/" + id + "/" + kLock, run.folder_lock))) continue;
    if (!TRY(take_lock(note_path(id), run.note_lock))) continue;
    if (run.note_lock) run.partial_results = TRY(sys::reread(run.note_lock, note_path(id)));
    dead.push_back(std::move(run));
  }
  return dead;
}

}  // namespace benchsand
