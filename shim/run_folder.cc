#include "shim/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

#include "shim/host_cgroup.h"

namespace benchsand {

namespace {

constexpr const char* kGate = "/run/benchsand/.gate";
constexpr const char* kLock = "lock";
constexpr const char* kResults = "results";

Result<void> make_private_directory(const std::string& path) {
  const auto made = sys::mkdirat(sys::kHere, path, 0700);
  if (!made && made.error().error_number != EEXIST) return made;
  const Fd dir = TRY(sys::open_directory(sys::kHere, path));
  const auto facts = TRY(sys::fstat(dir, path));
  if (facts.st_uid != 0 || (facts.st_mode & 077) != 0)
    return fault("use " + path + ": it must belong to root with mode 0700; remove it");
  return {};
}

// Creating a folder and locking it are two steps; gc must not look in between. Creators share this lock, gc has it alone.
Result<Fd> pass_gate(bool alone) {
  Fd gate = TRY(sys::openat(sys::kHere, kGate, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY_VOID(sys::flock(gate, kGate, alone));
  return gate;
}

}  // namespace

std::string delegate_state(const std::string& delegate) {
  return std::string(kRunBase) + "/state-" + delegate;
}

Result<void> make_base_folders() {
  for (const std::string& path :
       {std::string(kRunBase), std::string(kDelegateCache), delegate_state("crun"), delegate_state("runc")})
    TRY_VOID(make_private_directory(path));
  return {};
}

Result<RunFolder> RunFolder::create() {
  TRY_VOID(make_base_folders());
  const Fd gate = TRY(pass_gate(false));
  RunFolder folder;
  folder.id_ = "r" + TRY(sys::random_hex(12));
  TRY_VOID(sys::mkdirat(sys::kHere, folder.path(), 0700));
  folder.dir_ = TRY(sys::open_directory(sys::kHere, folder.path()));
  folder.lock_ = TRY(sys::openat(folder.dir_.get(), kLock, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (!TRY(sys::try_flock(folder.lock_, folder.path(kLock))))
    return fault("lock " + folder.path(kLock) + ": somebody else has it");
  TRY_VOID(sys::mkdirat(folder.dir_.get(), "output", 0700));
  return folder;
}

std::string RunFolder::path(const std::string& name) const {
  return std::string(kRunBase) + "/" + id_ + (name.empty() ? "" : "/" + name);
}

Result<void> RunFolder::note_results(const std::string& partial) const {
  return sys::create_file(dir_.get(), kResults, partial, 0600);
}

Result<void> RunFolder::remove() const {
  return sys::remove_tree(sys::kHere, path());
}

Result<std::vector<std::string>> all_runs() {
  std::vector<std::string> ids;
  if (!TRY(sys::exists(sys::kHere, kRunBase))) return ids;
  for (const auto& name : TRY(sys::list_directory(sys::kHere, kRunBase)))
    if (is_run_id(name)) ids.push_back(name);
  return ids;
}

Result<std::vector<DeadRun>> dead_runs() {
  std::vector<DeadRun> dead;
  if (!TRY(sys::exists(sys::kHere, kRunBase))) return dead;
  const Fd gate = TRY(pass_gate(true));
  for (const auto& id : TRY(all_runs())) {
    const std::string path = std::string(kRunBase) + "/" + id;
    DeadRun run{id, "", Fd()};
    auto lock = sys::openat(sys::kHere, path + "/" + kLock, O_RDWR | O_NOFOLLOW);
    if (lock) {
      if (!TRY(sys::try_flock(*lock, path))) continue;  // alive
      run.lock = std::move(*lock);
    } else if (lock.error().error_number != ENOENT) {
      return std::unexpected(lock.error());
    }
    const auto noted = sys::read_file(sys::kHere, path + "/" + kResults);
    if (noted)
      run.partial_results = *noted;
    else if (noted.error().error_number != ENOENT)
      return std::unexpected(noted.error());
    dead.push_back(std::move(run));
  }
  return dead;
}

}  // namespace benchsand
