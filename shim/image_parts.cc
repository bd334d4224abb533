#include "shim/image_parts.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <optional>

#include "oci/strict_json.h"
#include "oci/yaml_tree.h"
#include "shim/decompressor.h"
#include "shim/tar_reader.h"
#include "shim/tree_writer.h"

namespace benchsand {

namespace {

constexpr std::size_t kMostDocuments = 64 << 20, kMostArchived = 100'000;
constexpr int kLongestChain = 8;  // of links inside an archive

std::unexpected<Error> not_there(const std::string& where, const std::string& name) {
  return usage(where + ": it has no file " + in_quotes(name));
}

class DirectoryParts : public ImageParts {
 public:
  DirectoryParts(Fd dir, std::string where) : dir_(std::move(dir)), where_(std::move(where)) {}

  Result<std::string> text(const std::string& name) const override {
    const Fd file = TRY(open(name));
    const auto size = TRY(sys::fstat(file, name)).st_size;
    if (static_cast<std::size_t>(size) > kLargestJson)
      return usage(where_ + ": " + in_quotes(name) + " has " + std::to_string(size) + " bytes, at most " +
                   std::to_string(kLargestJson) + " are read");
    return sys::read_file(sys::kHere, "/proc/self/fd/" + std::to_string(file.get()), kLargestJson);
  }

  bool has(const std::string& name) const override { return open(name).has_value(); }

  Result<std::vector<Fd>> files(const std::vector<std::string>& names, const Fd&) const override {
    std::vector<Fd> list;
    for (const auto& name : names) list.push_back(TRY(open(name)));
    return list;
  }

 private:
  Result<Fd> open(const std::string& name) const {
    auto file = sys::openat2_beneath(dir_.get(), name, O_RDONLY | O_NONBLOCK);
    if (!file) {
      if (file.error().error_number == ENOENT) return not_there(where_, name);
      return usage(where_ + ": " + file.error().message);
    }
    if (!S_ISREG(TRY(sys::fstat(*file, name)).st_mode))
      return usage(where_ + ": " + in_quotes(name) + " is not a regular file");
    return file;
  }

  Fd dir_;
  std::string where_;
};

// "./a//b" and "a/c/../b" as "a/b"; nothing when it leads upward.
std::optional<std::string> plain_name(const std::string& given) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= given.size();) {
    const std::size_t end = std::min(given.find('/', start), given.size());
    const std::string part = given.substr(start, end - start);
    start = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..")
      parts.push_back(part);
    else if (parts.empty())
      return std::nullopt;
    else
      parts.pop_back();
  }
  std::string name;
  for (const auto& part : parts) name += (name.empty() ? "" : "/") + part;
  return name;
}

// Documents are small and begin as JSON does: they are all kept at the first reading, so that a compressed archive is read once.
class ArchiveParts : public ImageParts {
 public:
  ArchiveParts(Fd file, std::string where) : file_(std::move(file)), where_(std::move(where)) {}

  Result<void> read_documents() {
    return each([this](archive* a, archive_entry* entry, const std::string& name) -> Result<void> {
      const char* link = archive_entry_hardlink(entry);
      const bool symbolic = archive_entry_filetype(entry) == AE_IFLNK;
      if (link || symbolic) return note_link(name, link ? link : archive_entry_symlink(entry), symbolic);
      if (archive_entry_filetype(entry) != AE_IFREG) return {};
      links_.erase(name);
      documents_.erase(name);
      sizes_[name] = archive_entry_size(entry);
      return read_document(a, name);
    });
  }

  Result<std::string> text(const std::string& name) const override {
    const std::string real = resolved(name);
    if (const auto found = documents_.find(real); found != documents_.end()) return found->second;
    if (sizes_.contains(real))
      return usage(where_ + ": " + in_quotes(name) + " is no JSON document of at most " + std::to_string(kLargestJson) +
                   " bytes");
    return not_there(where_, name);
  }

  bool has(const std::string& name) const override { return sizes_.contains(resolved(name)); }

  Result<std::vector<Fd>> files(const std::vector<std::string>& names, const Fd& scratch) const override {
    std::map<std::string, Fd> copies;
    for (const auto& name : names) {
      if (!has(name)) return not_there(where_, name);
      copies[resolved(name)] = Fd();
    }
    TRY_VOID(each([&](archive* a, archive_entry* entry, const std::string& name) -> Result<void> {
      const auto wanted = copies.find(name);
      if (wanted == copies.end() || archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return {};
      wanted->second = TRY(copy_of(a, name, scratch));
      return {};
    }));
    std::vector<Fd> list;
    for (const auto& name : names) {
      const Fd& copy = copies[resolved(name)];
      if (!copy) return fault(where_ + ": it changed while it was read");
      list.emplace_back(::fcntl(copy.get(), F_DUPFD_CLOEXEC, 0));
      if (!list.back()) return sys_error("fcntl F_DUPFD", name, errno);
    }
    return list;
  }

 private:
  std::unexpected<Error> broken(archive* a) const { return usage(archive_problem(where_, a)); }

  // Null: what is not compressed is skipped where it is not wanted, and not read.
  Result<std::unique_ptr<Decompressor>> decompressor() const {
    std::array<char, 6> start{};
    const ssize_t n = ::pread(file_.get(), start.data(), start.size(), 0);
    if (n < 0) return sys_error("read", where_, errno);
    if (!is_compressed({start.data(), static_cast<std::size_t>(n)})) return nullptr;
    return std::make_unique<Decompressor>(file_, TreeBounds{}.bytes);
  }

  static la_ssize_t read_block(archive* a, void* plain, const void** block) {
    return hand_on(a, static_cast<Decompressor*>(plain)->read(), block);
  }

  template <class Action>
  Result<void> each(const Action& action) const {
    if (::lseek(file_.get(), 0, SEEK_SET) != 0) return sys_error("lseek", where_, errno);
    const auto plain = TRY(decompressor());
    const Archive a(archive_read_new());
    archive_read_support_format_tar(a.get());
    const int opened = plain ? archive_read_open(a.get(), plain.get(), nullptr, read_block, nullptr)
                             : archive_read_open_fd(a.get(), file_.get(), 65536);
    if (opened != ARCHIVE_OK) return broken(a.get());
    for (std::size_t count = 0;; ++count) {
      archive_entry* entry = nullptr;
      const int read = archive_read_next_header(a.get(), &entry);
      if (read == ARCHIVE_EOF) return {};
      if (read != ARCHIVE_OK) return broken(a.get());
      if (count == kMostArchived) return usage(where_ + ": more than " + std::to_string(kMostArchived) + " files");
      // A file is skipped or copied as a whole, so it is measured before.
      const auto before = archive_filter_bytes(a.get(), 0), most = static_cast<la_int64_t>(TreeBounds{}.bytes);
      if (before > most || archive_entry_size(entry) > most - before)
        return usage(where_ + ": it is larger than benchsand unpacks");
      const char* given = archive_entry_pathname(entry);
      const auto name = given ? plain_name(given) : std::nullopt;
      if (name && !name->empty()) TRY_VOID(action(a.get(), entry, *name));
    }
  }

  Result<void> note_link(const std::string& name, const char* target, bool symbolic) {
    if (!target) return {};
    const std::size_t slash = name.rfind('/');
    const std::string base = symbolic && slash != std::string::npos ? name.substr(0, slash + 1) : "";
    if (const auto real = plain_name(base + target)) links_[name] = *real;
    return {};
  }

  std::string resolved(const std::string& name) const {
    const auto plain = plain_name(name);
    std::string real = plain ? *plain : "";
    for (int i = 0; i < kLongestChain; ++i) {
      const auto link = links_.find(real);
      if (link == links_.end()) break;
      real = link->second;
    }
    return real;
  }

  Result<void> read_document(archive* a, const std::string& name) {
    const la_int64_t size = sizes_[name];
    if (size <= 0 || static_cast<std::size_t>(size) > kLargestJson) return {};
    std::string text(static_cast<std::size_t>(size), '\0');
    for (std::size_t done = 0; done < text.size();) {
      const la_ssize_t n = archive_read_data(a, text.data() + done, text.size() - done);
      if (n < 0) return broken(a);
      if (n == 0) return usage(where_ + ": " + in_quotes(name) + " is cut off");
      done += static_cast<std::size_t>(n);
      const std::size_t first = text.find_first_not_of(" \t\r\n");
      if (first < done && text[first] != '{' && text[first] != '[') return {};
    }
    documents_bytes_ += text.size();
    if (documents_bytes_ > kMostDocuments)
      return usage(where_ + ": its documents have more than " + std::to_string(kMostDocuments) + " bytes");
    documents_[name] = std::move(text);
    return {};
  }

  Result<Fd> copy_of(archive* a, const std::string& name, const Fd& scratch) const {
    Fd file(::openat(scratch.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!file) return sys_error("open a file without a name for", where_ + ": " + name, errno);
    errno = 0;
    if (archive_read_data_into_fd(a, file.get()) != ARCHIVE_OK)
      return errno == ENOSPC ? sys_error("copy", where_ + ": " + name, errno) : Result<Fd>(broken(a));
    return file;
  }

  Fd file_;
  std::string where_;
  std::map<std::string, std::string> documents_, links_;
  std::map<std::string, la_int64_t> sizes_;  // of every file
  std::size_t documents_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<ImageParts>> image_parts(const std::string& path, const std::string& where) {
  const auto opened = sys::openat(sys::kHere, path, O_RDONLY | O_NONBLOCK);
  if (!opened) return usage("use " + where + ": " + opened.error().message);
  const auto facts = TRY(sys::fstat(*opened, path));
  if (S_ISDIR(facts.st_mode))
    return std::make_unique<DirectoryParts>(TRY(sys::openat(opened->get(), ".", O_RDONLY | O_DIRECTORY)), where);
  if (!S_ISREG(facts.st_mode)) return usage("use " + where + ": neither a directory nor a regular file");
  auto parts = std::make_unique<ArchiveParts>(TRY(sys::openat(sys::kHere, path, O_RDONLY | O_NONBLOCK)), where);
  TRY_VOID(parts->read_documents());
  return parts;
}

}  // namespace benchsand
