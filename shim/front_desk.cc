#include "shim/front_desk.h"

#include <fcntl.h>

#include <cerrno>

#include "shim/run_folder.h"

namespace benchsand {

namespace {

constexpr const char *kOrder = ".json", *kSocket = ".socket", *kLock = ".lock";

// The id comes from an engine.
Result<std::string> place_of(const std::string& container, const char* what) {
  constexpr const char* kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-.";
  // A socket's path has 107 bytes at most.
  if (container.empty() || container.size() > 72 || container.front() == '.' ||
      container.find_first_not_of(kLetters) != std::string::npos)
    return fault("order a container: '" + container + "' is not an id that docker or podman gives");
  return std::string(kOrderBase) + "/" + container + what;
}

void forget(const std::string& container) {
  for (const char* what : {kOrder, kSocket, kLock})
    if (const auto place = place_of(container, what)) static_cast<void>(sys::unlinkat(sys::kHere, *place, 0));
}

}  // namespace

Result<FrontDesk> FrontDesk::open(const std::string& container, const FrontOrder& order) {
  TRY_VOID(make_root_directory(kOrderBase, 0700));
  const std::string lock = TRY(place_of(container, kLock));
  FrontDesk desk;
  desk.lock_ = TRY(sys::openat(sys::kHere, lock, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  desk.container_ = container;  // from here on there is something to take away
  if (!TRY(sys::try_flock(desk.lock_, lock))) return fault("lock " + lock + ": somebody else has it");
  desk.listener_ = TRY(ControlListener::create(TRY(place_of(container, kSocket))));
  TRY_VOID(sys::create_file(sys::kHere, TRY(place_of(container, kOrder)), front_order_json(order), 0600));
  return desk;
}

bool FrontDesk::is_order_taken() const {
  const auto place = place_of(container_, kOrder);
  const auto there = place ? sys::exists(sys::kHere, *place) : Result<bool>(false);
  return !there || !*there;
}

FrontDesk::~FrontDesk() {
  if (lock_) forget(container_);
}

Result<std::optional<TakenOrder>> take_front_order(const std::string& container) {
  const auto path = place_of(container, kOrder);
  if (!path) return std::nullopt;  // no id of ours, then: containerd allows longer ones
  const auto text = sys::read_file(sys::kHere, *path);
  if (!text && text.error().error_number == ENOENT) return std::nullopt;
  TakenOrder taken{TRY(parse_front_order(TRY(text), *path)), {}};
  TRY_VOID(sys::unlinkat(sys::kHere, *path, 0));
  auto front = TRY(ControlConnection::to(TRY(place_of(container, kSocket))));
  if (!front) return fault("make the container: the benchsand that ordered it has ended");
  taken.front = std::move(*front);
  return taken;
}

Result<std::vector<std::string>> collect_order_garbage() {
  std::vector<std::string> lines;
  if (!TRY(sys::exists(sys::kHere, kOrderBase))) return lines;
  for (const auto& name : TRY(sys::list_directory(sys::kHere, kOrderBase))) {
    if (!name.ends_with(kLock)) continue;
    const std::string path = std::string(kOrderBase) + "/" + name;
    const auto lock = sys::openat(sys::kHere, path, O_RDWR | O_NOFOLLOW);
    if (!lock && lock.error().error_number == ENOENT) continue;
    if (!lock) return std::unexpected(lock.error());
    if (!TRY(sys::try_flock(*lock, path))) continue;
    const std::string container = name.substr(0, name.size() - std::string(kLock).size());
    forget(container);
    lines.push_back("cleared the order for container " + container + ": the benchsand that gave it has ended");
  }
  return lines;
}

}  // namespace benchsand
