#include "shim/record_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <set>

#include "shim/host_cgroup.h"
#include "shim/run_folder.h"

namespace benchsand {

namespace {

constexpr const char* kSuffix = ".json";
constexpr const char* kLock = ".lock";
constexpr char kOlder = '~';  // in no container's id
constexpr std::size_t kShortestPrefix = 4, kLongestId = 200;
constexpr std::size_t kLargestRecord = 64 << 20;
constexpr std::uint64_t kDayNs = 86'400'000'000'000;

// As runtimes and engines have them, so that it can be a file's name.
bool is_container_id(const std::string& id) {
  return !id.empty() && id.size() <= kLongestId && id.front() != '.' &&
         id.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-.,") ==
             std::string::npos;
}

std::uint64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// N of ID~N; 0: the newest, which has none.
std::uint64_t number_of(const std::string& stem) {
  const auto mark = stem.find(kOlder);
  std::uint64_t number = 0;
  if (mark != std::string::npos) std::from_chars(stem.data() + mark + 1, stem.data() + stem.size(), number);
  return number;
}

// The one that was written last: ID, or when benchsand died between two renames, the highest ID~N.
bool is_later(const std::string& stem, const std::string& than) {
  const std::uint64_t a = number_of(stem), b = number_of(than);
  return a == 0 || (b != 0 && a > b);
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

Result<RecordStore> RecordStore::opened(const std::string& base) {
  RecordStore store;
  store.base_ = base;
  store.dir_ = TRY(sys::open_directory(sys::kHere, base));
  return store;
}

Result<RecordStore> RecordStore::open(const std::string& base) {
  const std::string above = std::filesystem::path(base).parent_path().string();
  if (const auto made = sys::mkdirat(sys::kHere, above, 0700); !made && made.error().error_number != EEXIST)
    return fault("make the place for records: " + made.error().message);
  TRY_VOID(make_root_directory(base, 0700));
  return opened(base);
}

Result<RecordStore> RecordStore::find(const std::string& base) {
  auto store = opened(base);
  if (store) return store;
  if (store.error().error_number == ENOENT)
    return usage("look for records in " + base + ": there are none yet; a container's first run makes the place");
  if (store.error().error_number == EACCES) return usage("look for records in " + base + ": only root may; use sudo");
  return store;
}

Result<std::vector<RecordStore::File>> RecordStore::files() const {
  std::vector<File> files;
  for (const auto& name : TRY(sys::list_directory(dir_.get(), "."))) {
    if (name.front() == '.' || !name.ends_with(kSuffix)) continue;
    const auto facts = sys::fstatat(dir_.get(), name, AT_SYMLINK_NOFOLLOW);
    if (!facts && facts.error().error_number == ENOENT) continue;  // another process rotates
    if (!facts) return std::unexpected(facts.error());
    if (!S_ISREG(facts->st_mode)) continue;
    const std::string stem = name.substr(0, name.size() - std::string(kSuffix).size());
    files.push_back({stem, stem.substr(0, stem.find(kOlder)),
                     static_cast<std::uint64_t>(facts->st_mtim.tv_sec) * 1'000'000'000 +
                         static_cast<std::uint64_t>(facts->st_mtim.tv_nsec)});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    if (a.modified_ns != b.modified_ns) return a.modified_ns > b.modified_ns;
    return a.id != b.id ? a.id < b.id : is_later(a.stem, b.stem);
  });
  return files;
}

Result<Fd> RecordStore::locked() const {
  Fd lock = TRY(sys::openat(dir_.get(), kLock, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
  TRY_VOID(sys::flock(lock, base_ + "/" + kLock, true));
  return lock;
}

Result<std::string> RecordStore::store(const nlohmann::json& record, const std::string& container) const {
  if (!is_container_id(container))
    return fault("keep the record of container '" + container + "': not an id that can be a file's name");
  const auto put_there = put(record.dump(2, ' ', true) + "\n", container, record.value("id", ""));
  if (!put_there)
    return fault("keep the record of container " + container + " in " + base_ + ": " + put_there.error().message +
                 "; nothing was recorded, so it has no score");
  return path_of(container);
}

// The old one is set aside only when the new one is whole and on the disk.
Result<bool> RecordStore::is_of_run(const std::string& container, const nlohmann::json& run) const {
  const auto text = sys::read_file(dir_.get(), container + kSuffix, kLargestRecord);
  if (!text && text.error().error_number == ENOENT) return false;
  const auto record = nlohmann::json::parse(TRY(text), nullptr, false);
  return record.is_object() && record.contains("id") && record["id"] == run;
}

Result<void> RecordStore::put(const std::string& text, const std::string& container, const nlohmann::json& run) const {
  const Fd lock = TRY(locked());
  const std::string temporary = "." + container + "." + TRY(sys::random_hex(6));
  const auto written = [&]() -> Result<void> {
    const Fd file = TRY(sys::openat(dir_.get(), temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
    TRY_VOID(sys::write_all(file, text, container + kSuffix));
    TRY_VOID(sys::fsync(file, container + kSuffix));
    if (TRY(is_of_run(container, run)))
      return sys::renameat(dir_.get(), temporary, container + kSuffix, sys::Over::another);
    TRY_VOID(set_aside(container));
    return sys::renameat(dir_.get(), temporary, container + kSuffix);
  }();
  if (written) return sys::fsync(dir_, base_);
  static_cast<void>(sys::unlinkat(dir_.get(), temporary, 0));  // the first error is the one to be told
  return written;
}

Result<void> RecordStore::set_aside(const std::string& container) const {
  if (!TRY(sys::exists(dir_.get(), container + kSuffix))) return {};
  std::uint64_t last = 0;
  for (const auto& file : TRY(files()))
    if (file.id == container) last = std::max(last, number_of(file.stem));
  return sys::renameat(dir_.get(), container + kSuffix, container + kOlder + std::to_string(last + 1) + kSuffix);
}

Result<std::uint64_t> RecordStore::rotate(const RecordKeeping& keeping) const {
  const Fd lock = TRY(locked());
  const auto kept = TRY(files());
  const std::uint64_t now = now_ns();
  std::uint64_t removed = 0;
  for (std::size_t i = kept.size(); i-- > 1;) {
    const bool old = kept[i].modified_ns < now && (now - kept[i].modified_ns) / kDayNs >= keeping.days;
    if (i < keeping.records && !old) break;  // all that come are younger
    TRY_VOID(sys::unlinkat(dir_.get(), kept[i].stem + kSuffix, 0));
    ++removed;
  }
  // Left by a process that was killed while it wrote: nobody else writes now.
  for (const auto& name : TRY(sys::list_directory(dir_.get(), ".")))
    if (name.front() == '.' && name != kLock) TRY_VOID(sys::unlinkat(dir_.get(), name, 0));
  return removed;
}

Result<FoundRecord> RecordStore::newest(const std::vector<File>& files, const std::string& id) const {
  std::vector<std::string> stems;
  for (const auto& file : files)
    if (file.id == id) stems.push_back(file.stem);
  if (stems.empty()) return usage("read the record of container " + id + ": it was removed just now");
  std::sort(stems.begin(), stems.end(), is_later);
  FoundRecord found{path_of(stems.front()), {}};
  stems.erase(stems.begin());
  if (!stems.empty())
    found.notes.push_back("this container has " + std::to_string(stems.size() + 1) +
                          " records, and this is the newest; the older ones: " + listed(stems));
  return found;
}

// Each id once, that of the newest record first.
Result<std::vector<std::string>> RecordStore::ids_named(const std::vector<File>& files, const std::string& name) const {
  std::vector<std::string> ids;
  const std::string quoted = nlohmann::json(name).dump(-1, ' ', true);
  for (const auto& file : files) {
    const auto text = sys::read_file(dir_.get(), file.stem + kSuffix, kLargestRecord);
    if (!text && text.error().error_number == ENOENT) continue;
    if (!text) return std::unexpected(text.error());
    if (text->find(quoted) == std::string::npos) continue;  // most are not worth parsing
    const auto record = nlohmann::json::parse(*text, nullptr, false);
    if (!record.is_object() || !record.contains("container") || !record["container"].is_object()) continue;
    const auto named = record["container"].find("name");
    if (named != record["container"].end() && *named == name && std::find(ids.begin(), ids.end(), file.id) == ids.end())
      ids.push_back(file.id);
  }
  return ids;
}

Result<RecordStore::Whose> RecordStore::whose(const std::vector<File>& files, const std::string& wanted) const {
  for (const auto& file : files)
    if (file.id == wanted) return Whose{wanted, {}};
  const auto named = TRY(ids_named(files, wanted));
  if (!named.empty()) {
    Whose found{named.front(), {}};
    if (named.size() > 1)
      found.notes.push_back(std::to_string(named.size()) + " containers had the name " + wanted +
                            ", and this is the newest; all of them: " + listed(named));
    return found;
  }
  std::set<std::string> ids;
  for (const auto& file : files)
    if (wanted.size() >= kShortestPrefix && file.id.starts_with(wanted)) ids.insert(file.id);
  if (ids.size() == 1) return Whose{*ids.begin(), {}};
  const std::string what = "find the record of container " + wanted + " in " + base_ + ": ";
  if (ids.empty())
    return usage(what +
                 "no id or name is this, and no id begins so (with four characters at least); `benchsand records` "
                 "lists what is kept");
  return usage(what + std::to_string(ids.size()) +
               " ids begin so; give more of it: " + listed(std::vector<std::string>(ids.begin(), ids.end())));
}

// Nullopt: none of that run is kept. The words of whoever wrote a record are looked at, not those of its file's name.
Result<std::optional<FoundRecord>> RecordStore::of_run(const std::vector<File>& files, const std::string& run) const {
  if (!is_run_id(run)) return std::nullopt;
  for (const auto& file : files) {
    const auto text = sys::read_file(dir_.get(), file.stem + kSuffix, kLargestRecord);
    if (!text && text.error().error_number == ENOENT) continue;
    if (!text) return std::unexpected(text.error());
    if (text->find(run) == std::string::npos) continue;  // most are not worth parsing
    const auto record = nlohmann::json::parse(*text, nullptr, false);
    if (record.is_object() && record.value("id", nlohmann::json()) == run) return FoundRecord{path_of(file.stem), {}};
  }
  return std::nullopt;
}

// An older one of a container, by whatever the container is known by.
Result<FoundRecord> RecordStore::look_up(const std::string& wanted) const {
  const auto all = TRY(files());
  if (auto found = TRY(of_run(all, wanted))) return std::move(*found);
  const std::size_t mark = wanted.find(kOlder);
  auto found = TRY(whose(all, wanted.substr(0, mark)));
  if (mark == std::string::npos) {
    auto record = TRY(newest(all, found.id));
    record.notes.insert(record.notes.end(), found.notes.begin(), found.notes.end());
    return record;
  }
  const std::string stem = found.id + wanted.substr(mark);
  std::vector<std::string> stems;
  for (const auto& file : all) {
    if (file.stem == stem) return FoundRecord{path_of(stem), std::move(found.notes)};
    if (file.id == found.id) stems.push_back(file.stem);
  }
  return usage("find the record " + wanted + " in " + base_ + ": this container has no such record, but " +
               listed(stems));
}

Result<std::vector<RecordLine>> RecordStore::list() const {
  std::vector<RecordLine> lines;
  for (const auto& file : TRY(files())) {
    const auto text = sys::read_file(dir_.get(), file.stem + kSuffix, kLargestRecord);
    if (!text && text.error().error_number == ENOENT) continue;
    if (!text) return std::unexpected(text.error());
    lines.push_back(record_line(file.stem, nlohmann::json::parse(*text, nullptr, false)));
  }
  return lines;
}

Result<FoundRecord> find_record(const std::string& wanted, const std::string& base) {
  const auto facts = sys::fstatat(sys::kHere, wanted, 0);
  const FoundRecord path{facts && S_ISDIR(facts->st_mode) ? wanted + "/record.json" : wanted, {}};
  if (wanted.find('/') != std::string::npos || wanted.ends_with(kSuffix)) return path;
  auto store = RecordStore::find(base);
  auto found = store ? store->look_up(wanted) : Result<FoundRecord>(std::unexpected(store.error()));
  const std::string usual = "benchsand-results/" + wanted + "/record.json";
  if (!facts && !found && is_run_id(wanted) && sys::fstatat(sys::kHere, usual, 0)) return FoundRecord{usual, {}};
  if (!facts) return found;
  if (!found) return path;
  found->notes.push_back("there is a file of this name here too; for that, give ./" + wanted);
  return found;
}

}  // namespace benchsand
