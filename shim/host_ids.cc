#include "shim/host_ids.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "shim/run_folder.h"

namespace benchsand {

namespace {

constexpr const char* kLocks = "/run/benchsand/ids";
constexpr std::uint64_t kIdsOfASlot = 2;
constexpr const char* kOtherwise = ", or use a profile that says user_namespace: host (see profiles/README.md)";

// A lock on one byte of a file without bytes. It belongs to the open file, so the kernel drops it with its last descriptor.
Result<bool> lock_byte(const Fd& file, std::uint32_t slot) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  if (::fcntl(file.get(), F_OFD_SETLK, &lock) == 0) return true;
  if (errno == EAGAIN || errno == EACCES) return false;
  return sys_error("lock", std::string(kLocks) + " byte " + std::to_string(slot), errno);
}

// A file that is not there gives nothing away.
Result<std::vector<IdRange>> ids_given_away() {
  struct File {
    const char* path;
    Result<std::vector<IdRange>> (*parse)(const std::string& text, const std::string& source);
  };
  constexpr File kFiles[] = {{"/etc/passwd", parse_passwd_ids},
                             {"/etc/group", parse_group_ids},
                             {"/etc/subuid", parse_subordinate_ids},
                             {"/etc/subgid", parse_subordinate_ids}};
  constexpr std::size_t kLargest = 64 << 20;
  std::vector<IdRange> all;
  for (const auto& [path, parse] : kFiles) {
    if (!TRY(sys::exists(sys::kHere, path))) continue;
    for (const auto& range : TRY(parse(TRY(sys::read_file(sys::kHere, path, kLargest)), path))) all.push_back(range);
  }
  return all;
}

// What this process itself can map: all ids, or fewer where it runs in a user namespace.
Result<std::vector<IdRange>> own_ids() {
  std::vector<IdRange> both;
  const auto uids = TRY(parse_id_map(TRY(sys::read_file(sys::kHere, "/proc/self/uid_map")), "/proc/self/uid_map"));
  const auto gids = TRY(parse_id_map(TRY(sys::read_file(sys::kHere, "/proc/self/gid_map")), "/proc/self/gid_map"));
  for (const auto& uid : uids)
    for (const auto& gid : gids) {
      const std::uint64_t first = std::max(uid.inside, gid.inside);
      const std::uint64_t end = std::min(uid.inside + uid.count, gid.inside + gid.count);
      if (first < end) both.push_back({first, end - first});
    }
  return both;
}

Result<void> require_user_namespaces() {
  if (!TRY(sys::exists(sys::kHere, "/proc/self/ns/user")))
    return fault(std::string("make a user namespace for the run: this kernel has none (CONFIG_USER_NS); use another") +
                 kOtherwise);
  const std::string path = "/proc/sys/user/max_user_namespaces";
  if (TRY(parse_counter(TRY(sys::read_file(sys::kHere, path)), path)) == 0)
    return fault("make a user namespace for the run: " + path +
                 " is 0; allow some: sysctl user.max_user_namespaces=1000" + kOtherwise);
  return {};
}

}  // namespace

bool host_ids_are_free(std::uint32_t first, const std::vector<IdRange>& taken, const std::vector<IdRange>& own) {
  const std::uint64_t end = first + kIdsOfASlot;
  const bool somebodys = std::any_of(taken.begin(), taken.end(), [&](const IdRange& range) {
    return range.first < end && first < range.first + range.count;
  });
  return !somebodys && std::any_of(own.begin(), own.end(), [&](const IdRange& range) {
    return range.first <= first && end <= range.first + range.count;
  });
}

Result<HostIdSlot> HostIdSlot::take() {
  TRY_VOID(require_user_namespaces());
  // A random one: the ids of a run that was killed this moment are not the next run's.
  return take_from(static_cast<std::uint32_t>(std::stoul(TRY(sys::random_hex(4)), nullptr, 16)) % kHostIdSlots);
}

Result<HostIdSlot> HostIdSlot::take_from(std::uint32_t start) {
  const auto taken = TRY(ids_given_away()), own = TRY(own_ids());
  HostIdSlot slot;
  slot.lock_ = TRY(sys::openat(sys::kHere, kLocks, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  for (std::uint32_t i = 0; i < kHostIdSlots; ++i) {
    const std::uint32_t number = (start + i) % kHostIdSlots;
    slot.first_ = kFirstHostId + number * static_cast<std::uint32_t>(kIdsOfASlot);
    if (host_ids_are_free(slot.first_, taken, own) && TRY(lock_byte(slot.lock_, number))) return slot;
  }
  return fault(
      "take host ids for the run: none is free from " + std::to_string(kFirstHostId) +
      " up; they are given away in /etc/passwd, group, subuid or subgid, or do not exist in benchsand's own user "
      "namespace (run it on the host)" +
      kOtherwise);
}

}  // namespace benchsand
