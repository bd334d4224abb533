// Which file is the delegate: found in fixed directories, hashed, its version read once per binary.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "oci/sha256.h"
#include "shim/delegate.h"

namespace benchsand {

namespace {

constexpr std::uint64_t kVersionWithinUs = 10'000'000;
constexpr std::uint64_t kLargestBinary = 256 << 20;

Result<std::pair<std::string, Fd>> open_binary(const std::string& name) {
  for (const char* dir : {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"}) {
    auto fd = sys::openat(sys::kHere, dir + name, O_RDONLY);
    if (fd) return std::make_pair(dir + name, std::move(*fd));
    if (fd.error().error_number != ENOENT) return std::unexpected(fd.error());
  }
  return fault(
      "find the delegate " + name +
      ": not in /usr/local/sbin, /usr/local/bin, /usr/sbin, /usr/bin, /sbin, /bin; install it (apt-get install " +
      name + ")");
}

// Changes whenever the file's content can have changed.
std::string identity(const struct stat& facts) {
  const auto text = [](auto number) { return std::to_string(number); };
  return text(facts.st_dev) + "-" + text(facts.st_ino) + "-" + text(facts.st_size) + "-" + text(facts.st_mtim.tv_sec) +
         "." + text(facts.st_mtim.tv_nsec) + "-" + text(facts.st_ctim.tv_sec) + "." + text(facts.st_ctim.tv_nsec);
}

Result<std::string> digest_of(const Fd& file, std::uint64_t size, const std::string& path) {
  Sha256 hash;
  std::array<char, 65536> buffer;
  std::uint64_t at = 0;
  while (at < size) {
    const ssize_t n = ::pread(file.get(), buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (n < 0) return sys_error("read", path, errno);
    if (n == 0) return fault("read " + path + ": it became shorter");
    hash.update({buffer.data(), static_cast<std::size_t>(n)});
    at += static_cast<std::uint64_t>(n);
  }
  return hash.hex();
}

// First line of `NAME --version`: "crun version 1.8.1", "runc version 1.1.5+ds1".
Result<std::string> version_of(const DelegateBinary& binary) {
  sys::Pipe out = TRY(sys::pipe());
  DelegateStart start;
  start.arguments = {"--version"};
  start.standard_input = TRY(sys::sealed_memory("empty", ""));
  start.standard_output = std::move(out.write);
  start.standard_error = TRY(sys::openat(sys::kHere, "/dev/null", O_WRONLY));
  auto process = TRY(Delegate::start(binary, std::move(start)));
  TRY_VOID(process.executed());
  const auto status = TRY(process.wait(sys::monotonic_us() + kVersionWithinUs));
  if (!status || *status != 0) return fault("run " + binary.path + " --version: it did not succeed in time");
  std::array<char, 4096> buffer{};
  const ssize_t n = ::read(out.read.get(), buffer.data(), buffer.size());
  if (n <= 0) return fault("run " + binary.path + " --version: it said nothing");
  const std::string text(buffer.data(), static_cast<std::size_t>(n));
  const std::string prefix = binary.facts.name + " version ";
  if (!text.starts_with(prefix)) return fault("run " + binary.path + " --version: not the line '" + prefix + "…'");
  return text.substr(prefix.size(), text.find('\n') - prefix.size());
}

}  // namespace

Result<std::string> find_delegate_path(const std::string& name) {
  return TRY(open_binary(name)).first;
}

Result<DelegateBinary> find_delegate(const std::string& name, const std::string& cache) {
  auto [path, file] = TRY(open_binary(name));
  const auto facts = TRY(sys::fstat(file, path));
  if (!S_ISREG(facts.st_mode) || facts.st_size <= 0 || static_cast<std::uint64_t>(facts.st_size) > kLargestBinary)
    return fault("use the delegate " + path + ": not a regular file of a sensible size");
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  DelegateBinary binary;
  binary.facts.name = name;
  binary.path = path;
  // crun copies itself into sealed memory and executes that copy, unless it already is one; runc has a cheaper way.
  binary.sealed = name == "crun";
  binary.file = binary.sealed ? TRY(sys::sealed_copy(name, file, size)) : std::move(file);

  const std::string known = cache + "/" + name + "-" + identity(facts);
  if (const auto text = sys::read_file(sys::kHere, known); text && text->size() > 66 && (*text)[64] == ' ') {
    binary.facts.sha256 = text->substr(0, 64);
    binary.facts.version = text->substr(65, text->size() - 66);
    return binary;
  }
  binary.facts.sha256 = TRY(digest_of(binary.file, size, path));
  binary.facts.version = TRY(version_of(binary));
  // Another run may write the same bytes at the same moment; whoever comes second finds the name taken, which is fine.
  const std::string temporary = known + "." + TRY(sys::random_hex(6));
  TRY_VOID(sys::create_file(sys::kHere, temporary, binary.facts.sha256 + " " + binary.facts.version + "\n", 0600));
  if (!sys::renameat(sys::kHere, temporary, known)) TRY_VOID(sys::unlinkat(sys::kHere, temporary, 0));
  return binary;
}

}  // namespace benchsand
