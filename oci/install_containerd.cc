#include "oci/install_containerd.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "oci/toml_text.h"

namespace benchsand {

namespace {

constexpr const char* kBegin = "# >>> benchsand install containerd: everything up to its end is removed by --uninstall";
constexpr const char* kEnd = "# <<< benchsand install containerd";
// The last line of the file had no line end, and gets it back so.
constexpr const char* kCut = " (after an unended line)";

struct Block {
  std::size_t begin = 0, end = 0;
  bool after_cut_line = false;
};

std::optional<std::size_t> line_at(const std::string& text, const std::string& start, std::size_t from) {
  for (auto at = text.find(start, from); at != std::string::npos; at = text.find(start, at + 1))
    if (at == 0 || text[at - 1] == '\n') return at;
  return std::nullopt;
}

Result<std::optional<Block>> find_block(const std::string& text, const std::string& file) {
  const auto begin = line_at(text, kBegin, 0), end = line_at(text, kEnd, 0);
  if (!begin && !end) return std::optional<Block>();
  if (!begin || !end || *end < *begin || line_at(text, kBegin, *begin + 1) || line_at(text, kEnd, *end + 1))
    return usage("read " + file + ": the block of benchsand has not one beginning and one end; remove it by hand");
  Block block;
  block.begin = *begin;
  block.end = std::min(text.find('\n', *end), text.size() - 1) + 1;
  block.after_cut_line =
      text.compare(*begin + std::char_traits<char>::length(kBegin), std::char_traits<char>::length(kCut), kCut) == 0;
  if (block.after_cut_line && block.begin > 0) --block.begin;
  return std::optional(block);
}

std::string without(std::string text, const std::optional<Block>& block) {
  return block ? text.erase(block->begin, block->end - block->begin) : text;
}

using Entries = std::vector<TomlEntry>;

const TomlEntry* find(const Entries& entries, const std::vector<std::string>& path) {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& one) { return one.path == path; });
  return found == entries.end() ? nullptr : &*found;
}

// The plugin that makes pods' containers; version 3 has split it.
std::vector<std::string> runtimes_path(int version) {
  return {"plugins", version == 2 ? "io.containerd.grpc.v1.cri" : "io.containerd.cri.v1.runtime", "containerd",
          "runtimes"};
}

Result<int> version_of(const Entries& entries, const std::string& file) {
  if (entries.empty()) return 2;
  const TomlEntry* version = find(entries, {"version"});
  if (version && (version->text == "2" || version->text == "3")) return version->text == "2" ? 2 : 3;
  return usage("read " + file + ": it has " +
               (version ? "version " + version->text : std::string("no version, and so is of version 1")) +
               "; only versions 2 and 3 are known: see containerd config migrate");
}

Result<void> check_enabled(const Entries& entries, const std::string& file) {
  const TomlEntry* disabled = find(entries, {"disabled_plugins"});
  if (!disabled) return {};
  for (const auto& name : disabled->strings)
    if (name == "cri" || name == "io.containerd.grpc.v1.cri" || name == "io.containerd.cri.v1.runtime")
      return usage("register with " + file + ": its disabled_plugins hold '" + name +
                   "', whose handlers these are; take it out, or use ctr, which needs no entry: ctr run --runtime "
                   "io.containerd.runc.v2 --runc-binary PATH");
  return {};
}

// A table that is closed, or there already, cannot be added to at the end of the file.
Result<void> check_room(const Entries& entries, const std::string& file, const std::vector<std::string>& table) {
  for (const auto& entry : entries) {
    const bool above = entry.path.size() <= table.size() && entry.kind != TomlEntry::Kind::table &&
                       std::equal(entry.path.begin(), entry.path.end(), table.begin());
    const bool inside = entry.path.size() >= table.size() && std::equal(table.begin(), table.end(), entry.path.begin());
    if (above || inside)
      return usage("register " + table.back() + " in " + file + ": line " + std::to_string(entry.line) + " has " +
                   (inside ? "a runtime of that name already; remove or rename it"
                           : "'" + entry.path.back() + "' in one line; write it as a table of its own"));
  }
  return {};
}

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();  // JSON's strings are TOML's too
}

std::string block_text(int version, bool write_version, bool after_cut_line,
                       const std::vector<NamedRuntime>& runtimes) {
  const auto path = runtimes_path(version);
  const std::string parent = path[0] + "." + quoted(path[1]) + "." + path[2] + "." + path[3] + ".";
  std::string text = after_cut_line ? "\n" : "";
  text += std::string(kBegin) + (after_cut_line ? kCut : "") + "\n";
  if (write_version) text += "version = 2\n";
  for (const auto& runtime : runtimes) {
    const std::string table = parent + runtime.name;
    text += "[" + table + "]\n  runtime_type = \"io.containerd.runc.v2\"\n";
    text += "  [" + table + ".options]\n    BinaryName = " + quoted(runtime.path) + "\n";
  }
  return text + kEnd + "\n";
}

}  // namespace

Result<std::string> add_to_containerd(const std::string& text, const std::string& file,
                                      const std::vector<NamedRuntime>& runtimes) {
  TRY(read_toml(text, file));
  const auto old = TRY(find_block(text, file));
  const std::string rest = without(text, old);
  const Entries entries = TRY(read_toml(rest, file));
  TRY_VOID(check_enabled(entries, file));
  const int version = TRY(version_of(entries, file));
  for (const auto& runtime : runtimes) {
    auto table = runtimes_path(version);
    table.push_back(runtime.name);
    TRY_VOID(check_room(entries, file, table));
  }
  const bool cut = old ? old->after_cut_line : !rest.empty() && rest.back() != '\n';
  std::string changed = rest;
  changed.insert(old ? old->begin : rest.size(), block_text(version, entries.empty(), cut, runtimes));
  TRY(read_toml(changed, file));
  return changed;
}

Result<std::string> remove_from_containerd(const std::string& text, const std::string& file) {
  TRY(read_toml(text, file));
  return without(text, TRY(find_block(text, file)));
}

}  // namespace benchsand
