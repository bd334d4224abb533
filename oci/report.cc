#include "oci/report.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "oci/ink.h"
#include "oci/limits.h"
#include "oci/text.h"
#include "oci/units.h"
#include "oci/walls.h"

namespace benchsand {

using nlohmann::json;

namespace {

// The text of an observation, "?" when the record has none.
std::string seen(const json& evidence, const char* section, const char* wall, const char* name) {
  const json* at = &evidence;
  for (const char* key : {section, wall, name, "observed"}) {
    const auto found = at->find(key);  // the end, too, of what is no object
    if (found == at->end()) return "?";
    at = &*found;
  }
  if (at->is_null()) return "?";
  return at->is_string() ? on_one_line(*at) : at->dump();
}

std::optional<std::uint64_t> number_in(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string amount(const std::string& text, Unit unit) {
  const auto number = number_in(text);
  return number ? format_quantity(*number, unit) : text;
}

// The four ids of a process are equal wherever the wall held.
std::string first_word(const std::string& text) {
  return text.substr(0, text.find(' '));
}

std::string milliseconds(const std::string& text) {
  const auto us = number_in(text);
  return us ? std::to_string(*us / 1000) + " ms" : text;
}

std::string written(const json& stream) {
  const bool cut = stream.at("kept") != stream.at("bytes");
  return stream.at("bytes").dump() + " bytes" + (cut ? " (" + stream.at("kept").dump() + " kept)" : "");
}

// The counter's peak may be of the delegate's own threads, before the limit was set.
std::string processes_peak(const std::string& limit, const std::string& peak) {
  const bool numbers = (limit + peak).find_first_not_of("0123456789") == std::string::npos;
  const bool more = peak.size() > limit.size() || (peak.size() == limit.size() && peak > limit);
  if (numbers && more) return "at most " + limit + " of " + limit;
  return "peak " + peak + " of " + limit;
}

// Without benchsand's runtime nobody counts them.
std::string attempts_counted(const std::string& count) {
  return count == "?" ? "attempts not counted" : count + " attempts counted";
}

// One line a wall: what stood, in the observed numbers.
std::string summary(const json& record, const std::string& wall) {
  const json &e = record.at("evidence"), &policy = record.at("policy");
  const auto door = [&](const char* w, const char* n) { return seen(e, "established", w, n); };
  const auto spent = [&](const char* w, const char* n) { return seen(e, "spent", w, n); };
  const auto after = [&](const char* w, const char* n) { return seen(e, "after", w, n); };
  const json& limits = policy.at("limits");
  const auto limit_time = [&](const char* n) {
    return format_quantity(limits.at(n).get<std::uint64_t>(), Unit::duration_us);
  };
  const std::map<std::string, std::function<std::string()>> words = {
      {"network",
       [&] {
         return "own namespace, links " + door("network", "links") + ", routes " + door("network", "routes") + ", " +
                spent("network", "egress_bytes") + " bytes out";
       }},
      {"mounts",
       [&] {
         return door("mounts", "differences") == "none" ? std::string("exactly what was granted")
                                                        : door("mounts", "differences");
       }},
      {"rootfs", [&] { return "read-only; writable mounts: " + door("rootfs", "writable_mounts"); }},
      {"output",
       [&] {
         return amount(spent("output", "bytes_used"), Unit::bytes) + " of " +
                amount(door("output", "bytes"), Unit::bytes) + ", " + spent("output", "inodes_used") + " of " +
                door("output", "inodes") + " inodes";
       }},
      {"memory",
       [&] {
         return "peak " + amount(spent("memory", "peak"), Unit::bytes) + " of " +
                amount(door("memory", "limit"), Unit::bytes) + ", swap pinned, " + spent("memory", "oom_kills") +
                " killed";
       }},
      {"processes",
       [&] {
         return processes_peak(door("processes", "limit"), spent("processes", "peak")) + ", " +
                spent("processes", "refused") + " refused";
       }},
      {"cpu-time", [&] { return milliseconds(spent("cpu-time", "used_us")) + " of " + limit_time("cpu_time_us"); }},
      {"wall-time", [&] { return milliseconds(spent("wall-time", "used_us")) + " of " + limit_time("wall_time_us"); }},
      {"stdio",
       [&] {
         if (policy.value("terminal", false)) return std::string("not counted: it went through a terminal");
         return "stdout " + written(record.at("stdout")) + ", stderr " + written(record.at("stderr"));
       }},
      {"privileges",
       [&] {
         return "uid " + first_word(door("privileges", "uid")) + ", capabilities " +
                door("privileges", "capabilities") + ", descriptors " + door("privileges", "descriptors");
       }},
      {"syscalls",
       [&] {
         return door("syscalls", "refused") + " of " + door("syscalls", "of") + " refused, " +
                door("syscalls", "proof") + "; " + attempts_counted(spent("syscalls", "refused_calls"));
       }},
      {"namespaces",
       [&] {
         return std::string(policy.value("user_namespace", "host") == "own" ? "own user, mnt, pid, ipc, uts, cgroup"
                                                                            : "own mnt, pid, ipc, uts, cgroup");
       }},
      {"teardown",
       [&] {
         const std::string killed = after("teardown", "processes_killed");
         const bool counted = killed.find_first_not_of("0123456789") == std::string::npos;
         return (counted ? killed + " left-over processes killed"
                         : "left-over processes not counted: init ended before") +
                "; cgroup, mounts and folder gone";
       }},
      {"evidence",
       [&] {
         if (policy.value("plain", false)) return std::string("all but what the profile's without_runtime forgives");
         return std::string("complete; config.json ") + door("evidence", "config_sha256").substr(0, 12) +
                ", delegate " + door("evidence", "delegate_sha256").substr(0, 12);
       }},
  };
  const auto found = words.find(wall);
  return found == words.end() ? "" : found->second();
}

constexpr std::size_t kFilesListed = 20;

// "prefix name" lines of a list, cut where it would bury the verdict; the record has them all.
template <class Line>
std::string listed(const json& list, const char* more, Line line) {
  std::string text;
  for (std::size_t i = 0; i < list.size() && i < kFilesListed; ++i) text += line(list[i]) + "\n";
  if (list.size() > kFilesListed)
    text += std::string(more) + "and " + std::to_string(list.size() - kFilesListed) + " more, see record.json\n";
  return text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string attempted_call(const json& entry) {
  return entry.at("call").get<std::string>() +
         (entry.contains("argument") ? " " + entry.at("argument").get<std::string>() : "");
}

// A candidate could fill the list with twenty odd calls: networks and namespaces first, then what was tried most.
json most_telling_first(json attempts) {
  const auto rank = [](const json& entry) {
    const std::string argument = entry.contains("argument") ? entry.at("argument").get<std::string>() : "";
    const bool telling = argument.starts_with("AF_") || argument.starts_with("CLONE_");
    return std::pair(!telling, ~entry.at("count").get<std::uint64_t>());
  };
  std::stable_sort(attempts.begin(), attempts.end(), [&](const json& a, const json& b) { return rank(a) < rank(b); });
  return attempts;
}

std::vector<std::string> failures_of(const json& verdict, const std::string& wall) {
  std::vector<std::string> lines;
  for (const auto& f : verdict.at("failures"))
    if (f.at("wall") == wall)
      lines.push_back(on_one_line(f.at("source")) + ": expected " + on_one_line(f.at("expected")) + ", observed " +
                      on_one_line(f.at("observed")));
  return lines;
}

std::string joined(const std::vector<std::string>& lines, const std::string& between) {
  std::string text;
  for (const auto& line : lines) text += (text.empty() ? "" : between) + line;
  return text;
}

}  // namespace

std::string on_one_line(const std::string& text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = hidden_length(text, at);
    if (length == 0)
      shown += text[at++];
    else
      shown += escaped_bytes(text, std::exchange(at, at + length), length);
  }
  return shown;
}

int record_exit_status(const json& record) {
  if (record.at("verdict").at("scored") != true) return 3;
  const json& cause = record.at("end").at("cause");
  if (cause == "cpu-time" || cause == "wall-time") return 124;
  return record.at("verdict").at("outcome") == "succeeded" ? 0 : 1;
}

std::vector<WallLine> wall_lines(const json& record) {
  const bool started = record.at("end").at("cause") != "not-started";
  const json& evidence = record.at("evidence");
  std::vector<WallLine> lines;
  for (const auto& wall : wall_names()) {
    const auto broken = failures_of(record.at("verdict"), wall);
    if (!broken.empty())
      lines.push_back({wall, WallLine::State::broken, broken});
    else if (!evidence.at("established").contains(wall) && !evidence.at("after").contains(wall))
      lines.push_back({wall, WallLine::State::not_observed, {"not observed"}});
    else if (started)
      lines.push_back({wall, WallLine::State::held, {summary(record, wall)}});
    else
      lines.push_back({wall, WallLine::State::stood, {""}});
  }
  return lines;
}

const char* to_text(WallLine::State state) {
  switch (state) {
    case WallLine::State::held:
      return "held";
    case WallLine::State::stood:
      return "stood";
    case WallLine::State::broken:
      return "BROKEN";
    case WallLine::State::not_observed:
      return "-";
  }
  std::abort();  // not a value of the enumeration
}

Headline headline(const json& record) {
  const json &verdict = record.at("verdict"), &end = record.at("end");
  std::string text = verdict.at("outcome").get<std::string>() + ": " + end.at("cause").get<std::string>();
  if (end.at("exit_code").is_number()) text += ", exit code " + end.at("exit_code").dump();
  if (end.at("signal").is_number()) text += ", signal " + end.at("signal").dump();
  // Escaped: a record is a file that anybody may have written.
  if (verdict.at("scored") == true)
    return {"SCORED", on_one_line("(" + verdict.at("tier").get<std::string>() + ") " + text)};
  return {"NOT SCORED", on_one_line(text)};
}

namespace {

// Of a run that did not come to its door, what broke leads, and the walls that nobody could look at are one line.
std::vector<WallLine> lines_to_show(const json& record) {
  auto lines = wall_lines(record);
  const auto is_unknown = [](const WallLine& line) { return line.state == WallLine::State::not_observed; };
  if (std::count_if(lines.begin(), lines.end(), is_unknown) < 2) return lines;
  lines.erase(std::remove_if(lines.begin(), lines.end(), is_unknown), lines.end());
  std::stable_partition(lines.begin(), lines.end(),
                        [](const WallLine& line) { return line.state == WallLine::State::broken; });
  lines.push_back({"the others", WallLine::State::not_observed, {"not observed: the run did not come to its door"}});
  return lines;
}

}  // namespace

std::string verdict_table(const json& record, bool colour) {
  const Ink ink(colour);
  std::string text;
  for (const auto& line : lines_to_show(record)) {
    const std::string state = padded(to_text(line.state), 6);
    const bool bad = line.state == WallLine::State::broken;
    const bool unknown = line.state == WallLine::State::not_observed;
    text += padded(line.wall, 12) +
            (bad       ? ink.bad(state)
             : unknown ? state
                       : ink.good(state)) +
            "  " + joined(line.words, "\n" + std::string(20, ' ')) + "\n";
  }
  for (const auto& loosening : record.at("policy").at("relaxations"))
    text += "loosened    " + on_one_line(loosening) + "\n";
  text += listed(most_telling_first(record.at("evidence").at("refusals").at("by_call")), "tried       ",
                 [](const json& entry) {
                   const bool once = entry.at("count") == 1;
                   return "tried       " + on_one_line(attempted_call(entry)) + ", " +
                          (once ? "once" : entry.at("count").dump() + " times") + ": " + on_one_line(entry.at("errno"));
                 });
  text += listed(record.at("outputs"), "output      ", [](const json& file) {
    return "output      " + on_one_line(file.at("path")) + " (" + file.at("size").dump() + " bytes)";
  });
  text += listed(record.at("outputs_refused"), "not taken   ", [](const json& file) {
    return "not taken   " + on_one_line(file.at("path")) + ": " + on_one_line(file.at("reason"));
  });
  for (const auto& notice : record.at("notices")) text += "notice      " + on_one_line(notice) + "\n";
  const auto [score, why] = headline(record);
  return text + "verdict     " + (score == "SCORED" ? ink.good(score) : ink.bad(score)) + " " + why + "\n";
}

}  // namespace benchsand
