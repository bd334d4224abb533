#include "oci/mountinfo.h"

#include <algorithm>
#include <map>
#include <optional>

#include "oci/kernel_text.h"

namespace benchsand {

using namespace kernel_text;

namespace {

// "ID PARENT MAJOR:MINOR ROOT TARGET OPTIONS [TAG...] - TYPE SOURCE SUPER"
constexpr std::size_t kDevice = 2, kRoot = 3, kTarget = 4, kOptions = 5, kFirstTag = 6;
constexpr std::size_t kAfterDash = 3;

// The kernel escapes blank, tab, newline, backslash and '#' as three octal digits.
Result<std::string> unescape(std::string_view word, const std::string& source, std::string_view line) {
  static const std::map<std::string_view, char> escapes{
      {"040", ' '}, {"011", '\t'}, {"012", '\n'}, {"134", '\\'}, {"043", '#'}};
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '\\') {
      text += word[i];
      continue;
    }
    const auto found = escapes.find(word.substr(i + 1, 3));
    if (found == escapes.end()) return bad_line(source, "unknown escape", line);
    text += found->second;
    i += 3;
  }
  return text;
}

std::set<std::string> option_set(std::string_view word) {
  std::set<std::string> options;
  for (const std::string_view option : split(word, ',')) options.emplace(option);
  return options;
}

Result<void> check_device(std::string_view word, const std::string& source, std::string_view line) {
  const std::vector<std::string_view> parts = split(word, ':');
  if (parts.size() != 2) return bad_line(source, "'MAJOR:MINOR' is due as third field", line);
  for (const std::string_view part : parts) TRY(number(part, source, line));
  return {};
}

Result<MountEntry> parse_mount(std::string_view line, const std::string& source) {
  const std::vector<std::string_view> fields = split(line, ' ');
  const bool blank = std::any_of(fields.begin(), fields.end(), [](std::string_view field) { return field.empty(); });
  const auto dash =
      std::find(fields.begin() + std::min<std::ptrdiff_t>(kFirstTag, std::ssize(fields)), fields.end(), "-");
  if (blank || fields.end() - dash != kAfterDash + 1)
    return bad_line(source, "six fields, '-' and three more are due", line);
  for (const std::size_t id : {std::size_t{0}, std::size_t{1}}) TRY(number(fields[id], source, line));
  TRY_VOID(check_device(fields[kDevice], source, line));
  MountEntry mount;
  mount.device = fields[kDevice];
  mount.root = TRY(unescape(fields[kRoot], source, line));
  mount.target = TRY(unescape(fields[kTarget], source, line));
  mount.options = option_set(fields[kOptions]);
  mount.type = TRY(unescape(dash[1], source, line));
  mount.super_options = option_set(dash[kAfterDash]);
  if (!mount.target.starts_with('/')) return bad_line(source, "the mount point is not absolute", line);
  for (const auto& options : {mount.options, mount.super_options})
    if (options.contains("ro") == options.contains("rw")) return bad_line(source, "either ro or rw is due", line);
  return mount;
}

std::string joined(const std::set<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string describe(const MountEntry& mount) {
  return mount.type + " " + mount.root + ", " + joined(mount.options, ",");
}

// A null device, or an empty file system of its own. Emptiness cannot be read here; that nothing else of the sandbox is
// mounted from it, and that nobody can write to it, can.
bool hides(const MountEntry& mount, const std::set<std::string>& other_devices) {
  if (mount.root == "/null") return mount.type == "devtmpfs" || mount.type == "tmpfs";
  return mount.root == "/" && mount.type == "tmpfs" && !other_devices.contains(mount.device);
}

// A bind from elsewhere in the same /proc would hide nothing and show another path's files.
bool shows_own_path(const MountEntry& mount) {
  const std::string below = mount.target.starts_with("/proc") ? mount.target.substr(5) : mount.target;
  return mount.root == (below.empty() ? "/" : below);
}

// The whole of an overlay, or the file that was copied into a tmpfs: then this table names no path of the host.
bool is_of_its_own(const MountEntry& mount) {
  return (mount.type == "overlay" && mount.root == "/") || (mount.type == "tmpfs" && mount.root == kCopiedFile);
}

void compare(const MountEntry& mount, const GrantedMount& granted, const std::set<std::string>& other_devices,
             std::vector<std::string>& differences) {
  const auto differs = [&](const std::string& text) { differences.push_back(mount.target + ": " + text); };
  const bool writable = !mount.options.contains("ro");
  if (writable && !granted.writable) differs("is rw, must be ro");
  if (granted.writable && (!writable || mount.super_options.contains("ro"))) differs("is ro, must be rw");
  for (const std::string& flag : granted.required)
    if (!mount.options.contains(flag)) differs("is mounted without " + flag);
  if (!granted.types.empty() && !granted.types.contains(mount.type))
    differs("is of type " + mount.type + ", must be " + joined(granted.types, " or "));
  if (granted.types == std::set<std::string>{"proc"} && mount.type == "proc" && !shows_own_path(mount))
    differs("shows " + mount.root + " of its file system");
  if (granted.own && !is_of_its_own(mount))
    differs("is of the host's file system (" + mount.type + " " + mount.root + ")");
  if (granted.mask && !hides(mount, other_devices)) differs("must hide the path, but shows " + describe(mount));
}

// The devices that show something: of every granted mount that is not a mask.
std::set<std::string> visible_devices(const std::vector<MountEntry>& table, const std::vector<GrantedMount>& granted) {
  std::set<std::string> masks;
  for (const GrantedMount& grant : granted)
    if (grant.mask) masks.insert(grant.target);
  std::set<std::string> devices;
  for (const MountEntry& mount : table)
    if (!masks.contains(mount.target)) devices.insert(mount.device);
  return devices;
}

// What of `path` is below `directory`, without a slash in front; "": it is the directory itself.
std::optional<std::string> path_below(const std::string& path, const std::string& directory) {
  if (directory == "/") return path.substr(1);
  if (path == directory) return std::string();
  if (!path.starts_with(directory + "/")) return std::nullopt;
  return path.substr(directory.size() + 1);
}

std::string joined_path(const std::string& directory, const std::string& rest) {
  if (rest.empty()) return directory;
  return (directory == "/" ? "" : directory) + "/" + rest;
}

}  // namespace

Result<std::vector<MountEntry>> parse_mountinfo(const std::string& text, const std::string& source) {
  std::vector<MountEntry> table;
  std::set<std::string_view> ids;
  for (const std::string_view line : TRY(lines(text, source))) {
    table.push_back(TRY(parse_mount(line, source)));
    if (!ids.insert(line.substr(0, line.find(' '))).second) return bad_line(source, "the mount id stands twice", line);
  }
  return table;
}

std::vector<std::string> other_names(const std::string& path, const std::vector<MountEntry>& table) {
  const MountEntry* over = nullptr;
  for (const MountEntry& mount : table)  // of several at one place the last one is on top
    if (path_below(path, mount.target) && (!over || mount.target.size() >= over->target.size())) over = &mount;
  if (!over) return {};
  const std::string inside = joined_path(over->root, *path_below(path, over->target));
  std::vector<std::string> names;
  for (const MountEntry& mount : table) {
    const auto rest = path_below(inside, mount.root);
    if (mount.device != over->device || !rest) continue;
    const std::string name = joined_path(mount.target, *rest);
    if (name != path && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> mount_differences(const std::vector<MountEntry>& table,
                                           const std::vector<GrantedMount>& granted) {
  std::vector<std::string> differences;
  std::map<std::string, const GrantedMount*> expected;
  for (const GrantedMount& grant : granted)
    if (!expected.emplace(grant.target, &grant).second) differences.push_back(grant.target + ": is granted twice");
  const std::set<std::string> devices = visible_devices(table, granted);
  std::map<std::string, std::size_t> seen;
  for (const MountEntry& mount : table) {
    const auto found = expected.find(mount.target);
    if (++seen[mount.target] == 2) differences.push_back(mount.target + ": is mounted more than once");
    if (found == expected.end())
      differences.push_back(mount.target + ": is not granted (" + describe(mount) + ")");
    else
      compare(mount, *found->second, devices, differences);
  }
  for (const auto& [target, grant] : expected)
    if (!grant->optional && !seen.contains(target)) differences.push_back(target + ": is missing");
  std::sort(differences.begin(), differences.end());
  return differences;
}

}  // namespace benchsand
