// The files of one process: status, stat, limits, fdinfo and the namespace links.
#include <array>
#include <span>

#include "oci/kernel_files.h"
#include "oci/kernel_text.h"

namespace benchsand {

using namespace kernel_text;

namespace {

// "Key:\tvalue" lines, each key once.
class StatusFields {
 public:
  static Result<StatusFields> read(const std::string& text, const std::string& source) {
    StatusFields fields(source);
    for (const std::string_view line : TRY(lines(text, source))) {
      const std::size_t colon = line.find(':');
      if (colon == std::string_view::npos || colon == 0 || line.substr(colon + 1, 1) != "\t")
        return bad_line(source, "'KEY:<tab>VALUE' is due", line);
      if (!fields.values_.emplace(line.substr(0, colon), line.substr(colon + 2)).second)
        return bad_line(source, "the key stands twice", line);
    }
    return fields;
  }

  Result<std::string_view> value(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) return bad_file(source_, "'" + key + "' is missing");
    return found->second;
  }

  Result<std::uint64_t> single(const std::string& key, int base = 10) const {
    const std::string_view word = TRY(value(key));
    return number(word, source_, key + ":\t" + std::string(word), base);
  }

  Result<std::uint64_t> capabilities(const std::string& key) const {
    const std::string_view word = TRY(value(key));
    if (word.size() != 16) return bad_line(source_, "'" + key + "' is not a mask of 16 digits", word);
    return single(key, 16);
  }

  // Real, effective, saved, file system.
  Result<std::vector<std::uint64_t>> four(const std::string& key) const {
    const std::string_view all = TRY(value(key));
    const std::vector<std::string_view> parts = split(all, '\t');
    if (parts.size() != 4) return bad_line(source_, "'" + key + "' does not have four numbers", all);
    return numbers(parts, all);
  }

  // NSpid: from the reader's pid namespace down to the process's own.
  Result<std::uint64_t> last(const std::string& key) const {
    const std::string_view all = TRY(value(key));
    return TRY(numbers(split(all, '\t'), all)).back();
  }

  // The kernel writes a blank after each group, so also after the last one; without any group there is one blank.
  Result<std::vector<std::uint64_t>> groups() const {
    const std::string_view all = TRY(value("Groups"));
    if (all.empty() || all == " ") return std::vector<std::uint64_t>{};
    if (all.back() != ' ') return bad_line(source_, "'Groups' is cut off", all);
    return numbers(split(all.substr(0, all.size() - 1), ' '), all);
  }

 private:
  explicit StatusFields(std::string source) : source_(std::move(source)) {}

  Result<std::vector<std::uint64_t>> numbers(const std::vector<std::string_view>& parts, std::string_view line) const {
    std::vector<std::uint64_t> values;
    for (const std::string_view part : parts) values.push_back(TRY(number(part, source_, line)));
    return values;
  }

  std::string source_;
  std::map<std::string, std::string_view, std::less<>> values_;
};

// Field 3 is the first after the command name.
constexpr std::size_t kFirstField = 3;
constexpr std::size_t kFlags = 9;
constexpr std::size_t kMinorFaults = 10;
constexpr std::size_t kUserTicks = 14;
constexpr std::size_t kSystemTicks = 15;
constexpr std::size_t kStartTime = 22, kStartStack = 28;
constexpr std::size_t kExitCode = 52;

Result<RLimit> rlimit(std::string_view soft, std::string_view hard, const std::string& source, std::string_view line) {
  for (const std::string_view word : {soft, hard})
    if (word != "unlimited") TRY(number(word, source, line));
  return RLimit{std::string(soft), std::string(hard)};
}

}  // namespace

Result<ProcessStatus> parse_process_status(const std::string& text, const std::string& source) {
  const StatusFields fields = TRY(StatusFields::read(text, source));
  ProcessStatus status;
  status.name = TRY(fields.value("Name"));
  status.uid = TRY(fields.four("Uid"));
  status.gid = TRY(fields.four("Gid"));
  status.groups = TRY(fields.groups());
  status.parent = TRY(fields.single("PPid"));
  status.own_number = TRY(fields.last("NSpid"));
  status.cap_inheritable = TRY(fields.capabilities("CapInh"));
  status.cap_permitted = TRY(fields.capabilities("CapPrm"));
  status.cap_effective = TRY(fields.capabilities("CapEff"));
  status.cap_bounding = TRY(fields.capabilities("CapBnd"));
  status.cap_ambient = TRY(fields.capabilities("CapAmb"));
  status.no_new_privs = TRY(fields.single("NoNewPrivs"));
  status.seccomp_mode = TRY(fields.single("Seccomp"));
  status.seccomp_filters = TRY(fields.single("Seccomp_filters"));
  return status;
}

Result<ProcessStat> parse_process_stat(const std::string& text, const std::string& source) {
  if (text.empty()) return bad_file(source, "the file is empty");
  if (text.find('\0') != std::string::npos) return bad_file(source, "it holds a NUL byte");
  if (text.back() != '\n') return bad_file(source, "the last line is cut off");
  const std::string_view line(text.data(), text.size() - 1);
  const std::size_t open = line.find(" (");
  const std::size_t close = line.rfind(") ");  // the name may hold anything, the fields after it hold no parenthesis
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return bad_line(source, "'PID (NAME) STATE ...' is due", line);
  TRY(number(line.substr(0, open), source, line));
  const std::vector<std::string_view> fields = split(line.substr(close + 2), ' ');
  if (fields.size() != kExitCode - kFirstField + 1)
    return bad_line(source, "52 fields are due, there are " + std::to_string(fields.size() + kFirstField - 1), line);
  if (fields[0].size() != 1 || fields[0][0] < 'A' || fields[0][0] > 'z')
    return bad_line(source, "the state is not one letter", line);
  for (const std::string_view field : std::span(fields).subspan(1))
    TRY(number(field.substr(field.starts_with('-') ? 1 : 0), source, line));
  ProcessStat stat;
  stat.state = fields[0][0];
  stat.flags = TRY(number(fields[kFlags - kFirstField], source, line));
  stat.minor_faults = TRY(number(fields[kMinorFaults - kFirstField], source, line));
  stat.cpu_ticks = TRY(number(fields[kUserTicks - kFirstField], source, line)) +
                   TRY(number(fields[kSystemTicks - kFirstField], source, line));
  stat.start_time = TRY(number(fields[kStartTime - kFirstField], source, line));
  stat.start_stack = TRY(number(fields[kStartStack - kFirstField], source, line));
  stat.wait_status = TRY(number(fields[kExitCode - kFirstField], source, line));
  return stat;
}

Result<std::map<std::string, RLimit>> parse_process_limits(const std::string& text, const std::string& source) {
  // "%-25s %-20s %-20s UNITS": the names hold blanks, so the columns are cut by their width.
  constexpr std::size_t soft_at = 26, hard_at = 47, units_at = 68;
  const std::vector<std::string_view> all = TRY(lines(text, source));
  if (words(all.front()) != std::vector<std::string_view>{"Limit", "Soft", "Limit", "Hard", "Limit", "Units"})
    return bad_line(source, "the header is unknown", all.front());
  std::map<std::string, RLimit> limits;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const std::string_view line = all[i];
    if (line.size() < units_at) return bad_line(source, "the line is too short", line);
    const std::string name(trim(line.substr(0, soft_at)));
    if (name.empty()) return bad_line(source, "the limit has no name", line);
    const RLimit limit = TRY(rlimit(trim(line.substr(soft_at, hard_at - soft_at)),
                                    trim(line.substr(hard_at, units_at - hard_at)), source, line));
    if (!limits.emplace(name, limit).second) return bad_line(source, "the limit stands twice", line);
  }
  return limits;
}

Result<std::uint64_t> parse_fd_flags(const std::string& text, const std::string& source) {
  constexpr std::string_view key = "flags:\t";
  std::optional<std::uint64_t> flags;
  for (const std::string_view line : TRY(lines(text, source))) {
    if (!line.starts_with("flags")) continue;
    if (!line.starts_with(key)) return bad_line(source, "'flags:<tab>OCTAL' is due", line);
    if (flags) return bad_line(source, "the key stands twice", line);
    flags = TRY(number(line.substr(key.size()), source, line, 8));
  }
  if (!flags) return bad_file(source, "'flags' is missing");
  return *flags;
}

Result<std::uint64_t> parse_namespace_link(const std::string& link, const std::string& type,
                                           const std::string& source) {
  const std::string start = type + ":[";
  if (!link.starts_with(start) || !link.ends_with("]") || link.size() <= start.size())
    return bad_line(source, "'" + start + "NUMBER]' is due", link);
  const std::string_view digits = std::string_view(link).substr(start.size(), link.size() - start.size() - 1);
  return number(digits, source, link);
}

}  // namespace benchsand
