// One wrapper per system call: same name, errors as values, descriptors close-on-exec from birth.
#pragma once

#include <signal.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oci/result.h"

namespace benchsand {

// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Fd old(std::exchange(fd_, std::exchange(other.fd_, -1)));
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset() { *this = Fd(); }

 private:
  int fd_ = -1;
};

// "CALL OBJECT: strerror", with errno kept in error_number.
std::unexpected<Error> sys_error(std::string_view call, std::string_view object, int error_number);

namespace sys {

inline constexpr int kHere = -100;  // AT_FDCWD

Result<Fd> openat(int dir, const std::string& path, int flags, mode_t mode = 0);
Result<Fd> open_directory(int dir, const std::string& path);  // O_DIRECTORY | O_NOFOLLOW
// Resolution is confined to `dir`: no "..", no symlink, no magic link, no other mount.
Result<Fd> openat2_beneath(int dir, const std::string& path, int flags);
// `dir` is the root: ".." and absolute links stay in it. No magic link, no other mount.
enum class Links { followed, refused };
Result<Fd> openat2_in_root(int dir, const std::string& path, int flags, Links links);

// The whole file. An error when it is larger than `most`.
Result<std::string> read_file(int dir, const std::string& path, std::size_t most = 4 << 20);
// Again from offset 0; kernel files produce their text anew.
Result<std::string> reread(const Fd& fd, const std::string& name);
Result<void> write_all(const Fd& fd, std::string_view bytes, const std::string& name);
// For kernel files: open for writing, one write.
Result<void> write_file(int dir, const std::string& path, std::string_view bytes);
// Creates; an existing file is an error.
Result<void> create_file(int dir, const std::string& path, std::string_view bytes, mode_t mode);

// A detached copy of the mount at `fd`, read-only, without set-user-ID and device nodes; nothing below it that is mounted.
Result<Fd> read_only_mount(const Fd& fd, const std::string& name);
// Adds MOUNT_ATTR_* to a detached mount, or takes them away.
Result<void> set_mount_attributes(const Fd& mount, std::uint64_t attributes, const std::string& name);
Result<void> clear_mount_attributes(const Fd& mount, std::uint64_t attributes, const std::string& name);

Result<void> mkdirat(int dir, const std::string& path, mode_t mode);
Result<void> unlinkat(int dir, const std::string& path, int flags);
enum class Over { nothing, another };
Result<void> renameat(int dir, const std::string& from, const std::string& to, Over over = Over::nothing);
// A whole new file in place of `path`, or nothing: never a half-written one. What is there must be a plain file.
Result<void> replace_file(const std::string& path, std::string_view bytes, mode_t mode);
// The same with the mode and owner of another, and on the disk before it is seen.
Result<void> replace_file_like(const std::string& path, std::string_view bytes, const struct stat& like);
Result<std::string> readlinkat(int dir, const std::string& path);
Result<struct stat> fstatat(int dir, const std::string& path, int flags);
Result<struct stat> fstat(const Fd& fd, const std::string& name);
Result<struct statfs> fstatfs(const Fd& fd, const std::string& name);
Result<void> fsync(const Fd& fd, const std::string& name);
Result<bool> exists(int dir, const std::string& path);
Result<std::vector<std::string>> list_directory(int dir, const std::string& path);  // sorted, without . and ..
// Removes a tree without following a symlink or crossing into another mount. Absent is fine.
Result<void> remove_tree(int dir, const std::string& path);
// Exclusive; false when somebody else holds it.
Result<bool> try_flock(const Fd& fd, const std::string& name);
Result<void> flock(const Fd& fd, const std::string& name, bool exclusive);

struct Pipe {
  Fd read, write;
};
Result<Pipe> pipe();
Result<void> set_nonblocking(const Fd& fd);
// A memory file that nobody can write to any more.
Result<Fd> sealed_memory(const std::string& name, std::string_view bytes);
Result<Fd> sealed_copy(const std::string& name, const Fd& file, std::uint64_t size);

Result<Fd> pidfd_open(pid_t pid);
Result<Fd> pidfd_getfd(const Fd& pidfd, int number);
Result<void> pidfd_send_signal(const Fd& pidfd, int signal);
// Waits for a child by pidfd until the deadline; nullopt when it still runs. The wait status as waitpid gives it.
Result<std::optional<int>> wait_child(const Fd& pidfd, std::uint64_t deadline_us);

Result<Fd> timerfd();
Result<void> timerfd_at(const Fd& timer, std::uint64_t monotonic_us);
Result<std::uint64_t> timerfd_left_us(const Fd& timer);  // as the kernel holds it; 0: not armed
Result<Fd> signalfd(const std::vector<int>& signals);    // and blocks them

// While it lives the signals do again what they did before signalfd.
class SignalsLetThrough {
 public:
  explicit SignalsLetThrough(const std::vector<int>& signals);
  ~SignalsLetThrough();
  SignalsLetThrough(const SignalsLetThrough&) = delete;
  SignalsLetThrough& operator=(const SignalsLetThrough&) = delete;

 private:
  sigset_t before_{};
};

std::uint64_t monotonic_us();
std::string utc_now();  // RFC 3339
Result<std::string> random_hex(std::size_t bytes);

// One of poll's revents, 0 on time-out.
Result<short> poll_one(const Fd& fd, short events, std::uint64_t deadline_us);

}  // namespace sys
}  // namespace benchsand
