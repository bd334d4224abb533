#include "conformance/stage.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "conformance/command.h"
#include "oci/sha256.h"
#include "shim/run_folder.h"

namespace benchsand::conformance {

namespace {

constexpr std::size_t kLargestProbe = 16 << 20;

std::string lock_of(const std::string& name) {
  return std::string(kStageBase) + "/" + name + ".lock";
}

// Beside benchsand in a build folder, and where the package has it.
Result<std::string> find_probe() {
  const std::string self = TRY(sys::readlinkat(sys::kHere, "/proc/self/exe"));
  const std::string here = self.substr(0, self.rfind('/'));
  for (const char* place : {"/probe", "/../lib/benchsand/probe"})
    if (TRY(sys::exists(sys::kHere, here + place))) return here + place;
  return fault("find the probe: it is neither beside " + self +
               " nor in ../lib/benchsand; install benchsand as a whole");
}

}  // namespace

Result<Stage> Stage::make() {
  const std::string probe = TRY(find_probe());
  TRY_VOID(make_root_directory(kStageBase, 0700));
  const std::string name = "s" + TRY(sys::random_hex(8));
  Fd lock = TRY(sys::openat(sys::kHere, lock_of(name), O_RDWR | O_CREAT | O_EXCL, 0600));
  TRY_VOID(sys::flock(lock, lock_of(name), true));
  // Somebody's gc found it before it was locked: the next gc would not find this suite.
  if (TRY(sys::fstat(lock, lock_of(name))).st_nlink == 0)
    return fault("lock " + lock_of(name) + ": benchsand gc took it away; try again");
  Stage stage(name, std::move(lock));
  TRY_VOID(stage.fill(probe));
  return stage;
}

Stage::~Stage() {
  if (!lock_) return;
  // What cannot be removed now, gc finds by the lock that nobody holds.
  if (!sys::remove_tree(sys::kHere, path_)) return;
  static_cast<void>(sys::unlinkat(sys::kHere, lock_of(name_), 0));
}

Result<void> Stage::fill(const std::string& probe) {
  const std::string program = TRY(sys::read_file(sys::kHere, probe, kLargestProbe));
  probe_sha256_ = sha256_hex(program);
  for (const char* folder :
       {"", "rootfs", "rootfs/dev", "rootfs/proc", "rootfs/etc", "rootfs/output", "planted", "tools"})
    TRY_VOID(sys::mkdirat(sys::kHere, path(folder), 0755));
  for (const char* name : {"rootfs/probe", "tools/probe"})
    TRY_VOID(sys::create_file(sys::kHere, path(name), program, 0755));
  TRY_VOID(sys::create_file(sys::kHere, path("rootfs/setuid-probe"), program, 0755));
  if (::chmod(path("rootfs/setuid-probe").c_str(), 04755) != 0) return sys_error("chmod", "setuid-probe", errno);
  TRY_VOID(sys::create_file(sys::kHere, path("rootfs/etc/passwd"), "root:x:0:0:root:/:/probe\n", 0644));
  return sys::create_file(sys::kHere, planted(), "benchsand-planted-" + TRY(sys::random_hex(16)) + "\n", 0644);
}

Result<void> Stage::make_place_for_planted() const {
  std::string folder = path("rootfs");
  const std::string place = path("planted");
  for (std::size_t at = 0; at != std::string::npos;) {
    const std::size_t next = place.find('/', at + 1);
    folder += place.substr(at, next - at);
    at = next;
    if (!TRY(sys::exists(sys::kHere, folder))) TRY_VOID(sys::mkdirat(sys::kHere, folder, 0755));
  }
  return {};
}

Result<OpenWatch> OpenWatch::on(const std::string& file) {
  OpenWatch watch;
  watch.fanotify_ = Fd(::fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC));
  if (!watch.fanotify_) return sys_error("fanotify_init", "", errno);
  if (::fanotify_mark(watch.fanotify_.get(), FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, file.c_str()) != 0)
    return sys_error("fanotify_mark", file, errno);
  return watch;
}

Result<std::uint64_t> OpenWatch::opened() {
  alignas(fanotify_event_metadata) std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t n = ::read(fanotify_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EAGAIN) return opened_;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return sys_error("read", "fanotify", errno);
    auto left = static_cast<std::size_t>(n);
    for (auto* event = reinterpret_cast<fanotify_event_metadata*>(buffer.data()); FAN_EVENT_OK(event, left);
         event = FAN_EVENT_NEXT(event, left)) {
      const Fd opened(event->fd);
      if (event->vers != FANOTIFY_METADATA_VERSION) return fault("read fanotify: events of another version");
      if ((event->mask & FAN_Q_OVERFLOW) != 0) return fault("read fanotify: events were lost");
      ++opened_;
    }
  }
}

Result<std::vector<std::string>> clear_dead_stages() {
  std::vector<std::string> cleared;
  if (!TRY(sys::exists(sys::kHere, kStageBase))) return cleared;
  for (const auto& entry : TRY(sys::list_directory(sys::kHere, kStageBase))) {
    if (!entry.ends_with(".lock")) continue;
    const std::string name = entry.substr(0, entry.size() - 5);
    const auto lock = sys::openat(sys::kHere, lock_of(name), O_RDWR);
    if (!lock && lock.error().error_number == ENOENT) continue;  // its suite has come to its end meanwhile
    if (!lock) return std::unexpected(lock.error());
    if (!TRY(sys::try_flock(*lock, lock_of(name)))) continue;
    TRY_VOID(sys::remove_tree(sys::kHere, std::string(kStageBase) + "/" + name));
    TRY_VOID(sys::unlinkat(sys::kHere, lock_of(name), 0));
    cleared.push_back("conformance " + name + ": its folder");
  }
  return cleared;
}

}  // namespace benchsand::conformance
