#include "shim/new_mount.h"

#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace benchsand {

namespace {

// The kernel's own words for what it did not like ("e overlay: ..."); many file systems have none.
std::string kernel_words(const Fd& context) {
  std::array<char, 500> text{};
  const ssize_t n = ::read(context.get(), text.data(), text.size());
  if (n <= 2) return "";
  std::string words(text.data() + 2, static_cast<std::size_t>(n) - 2);
  words.erase(words.find_last_not_of('\n') + 1);
  return " (" + words + ")";
}

}  // namespace

Result<NewMount> NewMount::open(const std::string& type) {
  const long opened = ::syscall(SYS_fsopen, type.c_str(), FSOPEN_CLOEXEC);
  if (opened < 0) return sys_error("fsopen", type, errno);
  NewMount made;
  made.context_ = Fd(static_cast<int>(opened));
  made.type_ = type;
  return made;
}

Result<void> NewMount::set(const std::string& key, const std::string& value) {
  if (::syscall(SYS_fsconfig, context_.get(), FSCONFIG_SET_STRING, key.c_str(), value.c_str(), 0) == 0) return {};
  const int failed = errno;
  return sys_error("fsconfig " + type_, key + "=" + value + kernel_words(context_), failed);
}

Result<Fd> NewMount::create(std::uint64_t attributes) {
  if (::syscall(SYS_fsconfig, context_.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    const int failed = errno;
    return sys_error("fsconfig " + type_, "create" + kernel_words(context_), failed);
  }
  const long mounted = ::syscall(SYS_fsmount, context_.get(), FSMOUNT_CLOEXEC, attributes);
  if (mounted < 0) return sys_error("fsmount", type_, errno);
  return Fd(static_cast<int>(mounted));
}

}  // namespace benchsand
