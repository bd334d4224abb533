#include "shim/gate.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "shim/new_mount.h"
#include "shim/output_fs.h"
#include "shim/stdio.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kLargestCommand = (4 << 20) - 1;  // gate.c
constexpr const char* kNames[] = {"gate", "stdin", "stdout", "stderr", "command", "report", "door"};

// Of what the file system of the gate is, for messages.
constexpr const char* kWhere = "the gate's file system";

Result<std::string> command_text(const Policy& policy) {
  std::string text = std::to_string(policy.command.size());
  text += '\0';
  for (const auto* list : {&policy.command, &policy.env})
    for (const auto& word : *list) {
      text += word;
      text += '\0';
    }
  if (text.size() > kLargestCommand)
    return usage("command: it and the environment have " + std::to_string(text.size()) + " bytes, and at most " +
                 std::to_string(kLargestCommand) + " can be handed to a container of an engine");
  return text;
}

Result<Fd> new_file_system(std::uint64_t bytes) {
  NewMount tmpfs = TRY(NewMount::open("tmpfs"));
  const std::pair<const char*, std::string> options[] = {
      {"size", std::to_string(bytes)}, {"nr_inodes", "16"}, {"mode", "0755"}};
  for (const auto& [key, value] : options) TRY_VOID(tmpfs.set(key, value));
  return tmpfs.create(MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

Result<void> copy_file(const Fd& from, const Fd& to, std::uint64_t size) {
  off_t at = 0;
  while (static_cast<std::uint64_t>(at) < size) {
    const ssize_t n = ::sendfile(to.get(), from.get(), &at, size - static_cast<std::uint64_t>(at));
    if (n < 0) return sys_error("copy", "stdin", errno);
    if (n == 0) return fault("copy stdin: it became shorter");
  }
  return {};
}

Result<void> set_mode(const Fd& mount, const std::string& name, mode_t mode) {
  if (::fchmodat(mount.get(), name.c_str(), mode, 0) != 0) return sys_error("chmod", name, errno);
  return {};
}

Result<std::string> identity_in(const Fd& mount, const std::string& name) {
  return identity_of(TRY(sys::fstatat(mount.get(), name, AT_SYMLINK_NOFOLLOW)));
}

}  // namespace

Result<Gate> Gate::create(const Policy& policy) {
  const Fd input = TRY(standard_input(policy.stdin_file));
  const auto facts = TRY(sys::fstat(input, "stdin"));
  const auto size = S_ISREG(facts.st_mode) ? static_cast<std::uint64_t>(facts.st_size) : 0;
  const std::string command = TRY(command_text(policy));
  Gate gate;
  gate.mount_ = TRY(new_file_system(size + command.size() + kGateProgram.size() + (64 << 10)));
  const int dir = gate.mount_.get();
  TRY_VOID(sys::create_file(dir, "stdin", "", 0444));
  TRY_VOID(copy_file(input, TRY(sys::openat(dir, "stdin", O_WRONLY | O_NOFOLLOW)), size));
  TRY_VOID(sys::create_file(dir, "command", command, 0444));
  const std::string_view program(reinterpret_cast<const char*>(kGateProgram.data()), kGateProgram.size());
  TRY_VOID(sys::create_file(dir, "gate", program, 0555));
  for (const char* name : {"stdin", "command"}) TRY_VOID(set_mode(gate.mount_, name, 0444));  // whatever the umask is
  TRY_VOID(set_mode(gate.mount_, "gate", 0555));
  TRY_VOID(gate.make_files());
  TRY_VOID(sys::set_mount_attributes(gate.mount_, MOUNT_ATTR_RDONLY, kWhere));
  return gate;
}

Result<void> Gate::make_files() {
  stdout_ = TRY(make_fifo("stdout", O_RDONLY));
  stderr_ = TRY(make_fifo("stderr", O_RDONLY));
  report_ = TRY(make_fifo("report", O_RDONLY));
  door_ = TRY(make_fifo("door", O_RDWR));  // a writer, before there is a reader
  program_ = TRY(identity_in(mount_, "gate"));
  streams_.files = true;
  streams_.input = TRY(identity_in(mount_, "stdin"));
  streams_.output = TRY(identity_in(mount_, "stdout"));
  streams_.error = TRY(identity_in(mount_, "stderr"));
  return {};
}

Result<Fd> Gate::make_fifo(const std::string& name, int flags) {
  if (::mkfifoat(mount_.get(), name.c_str(), 0600) != 0) return sys_error("mkfifo", name, errno);
  // For whoever the engine has made it: that it is another user, the host is to see.
  TRY_VOID(set_mode(mount_, name, 0666));
  return sys::openat(mount_.get(), name, flags | O_NONBLOCK | O_NOFOLLOW);
}

Result<void> Gate::is_ready() const {
  char byte = 0;
  const ssize_t n = ::read(report_.get(), &byte, 1);
  if (n == 1 && byte == 'r') return {};
  if (n < 0) return sys_error("read", "the gate's report", errno);
  return fault("start the container: its gate has ended; the profile must allow openat, read, write, close and execve");
}

Result<void> Gate::hide() const {
  TRY_VOID(sys::clear_mount_attributes(mount_, MOUNT_ATTR_RDONLY, kWhere));
  for (const char* name : kNames) TRY_VOID(sys::unlinkat(mount_.get(), name, 0));
  return sys::set_mount_attributes(mount_, MOUNT_ATTR_RDONLY, kWhere);
}

Result<void> Gate::open_door() const {
  return sys::write_all(door_, "o", "the gate's door");
}

Result<std::optional<int>> Gate::why_not_executed() const {
  unsigned char byte = 0;
  const ssize_t n = ::read(report_.get(), &byte, 1);
  if (n < 0 && errno != EAGAIN) return sys_error("read", "the gate's report", errno);
  return n == 1 ? std::optional<int>(byte) : std::nullopt;
}

}  // namespace benchsand
