#include "conformance/judge.h"

#include <algorithm>

#include "conformance/judge_parts.h"
#include "oci/json_path.h"
#include "oci/kernel_files.h"

namespace benchsand::conformance {

using nlohmann::json;

namespace {

constexpr const char* kKilled = "SIGKILL";

}  // namespace

Verdicted unknown(std::string reason) {
  return {CaseVerdict::unknown, std::move(reason)};
}

bool stands_in(const std::string& word, const std::vector<std::string>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool is_denial(const std::string& outcome) {
  return stands_in(outcome, {"EPERM", "EACCES", "EROFS", "SIGSYS"});
}

namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

}  // namespace

// Who has a sandbox of its own and is killed with it tells nothing; that the host killed it is the record's to say.
std::optional<std::string> outcome_of(const Case& one, const SceneResult& scene) {
  const auto told = scene.told.find(one.verb);
  if (told != scene.told.end()) return told->second.outcome;
  if (one.alone && !scene.whole && scene.fault.empty()) return kKilled;
  return std::nullopt;
}

std::optional<std::string> control_outcome(const Case& one, const SceneResult& control) {
  if (one.control.verbs.empty()) return outcome_of(one, control);
  const auto told = control.told.find(one.control.verbs.front());
  return told == control.told.end() ? std::nullopt : std::optional(told->second.outcome);
}

std::string detail_of(const Case& one, const SceneResult& scene) {
  const auto told = scene.told.find(one.verb);
  return told == scene.told.end() ? "" : told->second.detail;
}

bool has_word(const std::string& detail, const std::string& word) {
  return (" " + detail + " ").find(" " + word + " ") != std::string::npos;
}

namespace {

// A program says sentences, where the probe says words.
bool shows(const Case& one, const std::string& detail) {
  return one.program.empty() ? has_word(detail, one.shown) : detail.find(one.shown) != std::string::npos;
}

bool stands_under(const std::string& path, const json& outputs) {
  return std::any_of(outputs.begin(), outputs.end(), [&](const json& file) { return file.value("path", "") == path; });
}

std::optional<std::string> reason_under(const std::string& path, const json& refused) {
  for (const json& file : refused)
    if (file.value("path", "") == path) return file.value("reason", "");
  return std::nullopt;
}

// The calls that the supervisor refused and counted, "socket" or "socket AF_INET"; nothing: there is no ledger.
std::optional<std::string> refusals_of(const std::string& call, const json& record) {
  const json& rows = json_at(record, "/evidence/refusals/by_call");
  if (!rows.is_array()) return std::nullopt;
  std::uint64_t count = 0;
  for (const json& row : rows) {
    const std::string name = row.value("call", ""), argument = row.value("argument", "");
    if (call == name || call == name + " " + argument) count += row.value("count", std::uint64_t{0});
  }
  return std::to_string(count);
}

}  // namespace

// "/end/cause", "/evidence/spent/output/bytes_used/observed"; nothing where the record has no such place.
std::optional<std::string> recorded(const json& record, const std::string& place) {
  const auto name = place.substr(place.find('/') + 1);
  if (place.starts_with("outputs/")) {
    const json& outputs = json_at(record, "/outputs");
    if (!outputs.is_array()) return std::nullopt;
    return stands_under(name, outputs) ? "present" : "absent";
  }
  if (place.starts_with("refusals/")) return refusals_of(name, record);
  if (place.starts_with("refused/")) return reason_under(name, json_at(record, "/outputs_refused"));
  const bool own = place.starts_with("end/") || place.starts_with("stdout/") || place.starts_with("stderr/") ||
                   place.starts_with("sink/");
  const json& value = json_at(record, own ? "/" + place : "/evidence/" + place + "/observed");
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? std::optional(value.dump()) : std::nullopt;
}

bool agrees(const HostFact& fact, const std::string& seen) {
  if (fact.relation == HostFact::Relation::equals) return seen == fact.value;
  const auto number = parse_counter(seen + "\n", fact.place), bound = parse_counter(fact.value + "\n", fact.place);
  if (!number || !bound) return false;
  return fact.relation == HostFact::Relation::at_least ? *number >= *bound : *number <= *bound;
}

namespace {

// What the host saw, in words; and what of it contradicts the case.
struct HostHalf {
  std::string text, missing, contradicts;
};

HostHalf host_half(const Case& one, const SceneResult& scene, const std::map<std::string, std::string>& ledger) {
  HostHalf half;
  const auto add = [](std::string& text, const std::string& words) { text += (text.empty() ? "" : "; ") + words; };
  if (!one.ledger.empty() && !scene.counted) add(half.text, "not counted without benchsand's runtime");
  if (!one.ledger.empty() && scene.counted) {
    const auto difference = ledger.find(one.ledger);
    add(half.text, "ledger: " + one.ledger);
    if (difference != ledger.end()) add(half.contradicts, difference->second);
  }
  for (const HostFact& fact : one.host) {
    const auto seen = recorded(scene.record, fact.place);
    if (seen) add(half.text, fact.place + " " + *seen);
    if (!seen) add(half.missing, "the record has no " + fact.place);
    if (seen && !agrees(fact, *seen)) add(half.contradicts, fact.place + " is " + *seen + ", not " + fact.value);
  }
  if (one.planted && !scene.opened) add(half.missing, "the planted file could not be watched");
  if (one.planted && scene.opened) {
    add(half.text, "opened " + std::to_string(*scene.opened) + " times");
    if (*scene.opened != 0) add(half.contradicts, "the planted file was opened");
  }
  return half;
}

}  // namespace

std::string control_text(const Control& control) {
  std::vector<std::string> parts;
  for (const Relaxation relaxation : control.down) parts.push_back(to_text(relaxation));
  for (const auto& limit : control.limits) parts.push_back(limit.key + " " + limit.value);
  if (control.grant) parts.push_back("the file granted");
  for (const auto& verb : control.verbs) parts.push_back(verb);
  return (control.down.empty() ? "with " : "without ") + joined(parts, ", ");
}

namespace {

std::string with_blank(const std::string& detail) {
  return detail.empty() ? "" : " " + detail;
}

// What the host saw of a program's control: most of them fail there too, at somebody who hangs up.
std::string reached_text(const Case& one, const SceneResult& control) {
  std::string text;
  for (const HostFact& fact : one.control.host)
    text += "; " + fact.place + " " + recorded(control.record, fact.place).value_or("nowhere");
  return text;
}

}  // namespace

std::optional<Verdicted> judge_control(const Case& one, const SceneResult& control, const std::string& inside) {
  if (!control.fault.empty()) return unknown("its control could not be made: " + control.fault);
  const auto outcome = control_outcome(one, control);
  if (!outcome) return unknown("its control told nothing");
  for (const auto& [why_not, reason] : one.if_control) {
    const auto fact = host_fact(why_not);
    const auto seen = fact ? recorded(control.record, fact->place) : std::nullopt;
    const bool met = fact ? seen && agrees(*fact, *seen) : why_not == *outcome;
    if (met && !stands_in(inside, one.control.then)) return Verdicted{CaseVerdict::inapplicable, reason};
  }
  if (!stands_in(*outcome, one.control.then))
    return Verdicted{CaseVerdict::vacuous, "without the wall it came to " + *outcome + ", where " +
                                               joined(one.control.then, " or ") + " would show that it can be done"};
  for (const HostFact& fact : one.control.host) {
    const auto seen = recorded(control.record, fact.place);
    if (!seen || !agrees(fact, *seen))
      return Verdicted{CaseVerdict::vacuous, "in its control the host saw " + fact.place + " " +
                                                 seen.value_or("nowhere") + ", not " + fact.value};
  }
  if (one.planted && (!control.opened || *control.opened == 0))
    return Verdicted{CaseVerdict::vacuous, "in its control the planted file was read and the host saw nothing"};
  return std::nullopt;
}

namespace {

Verdicted judge_limit(const Case& one, const std::string& expected, const std::string& inside) {
  const bool profile = !one.allowed_by.empty();
  const std::string page = profile ? "profiles/README.md" : "docs/threats.md";
  if (inside != expected) return {CaseVerdict::limit_gone, "came to " + inside + "; " + page + " says that it works"};
  return {CaseVerdict::confirmed_limit,
          profile ? "the profile " + one.allowed_by + " lets it through on purpose (" + page + ")"
                  : "works, as " + page + " says"};
}

// An engine's own runtime mounts and filters in its own way: there another layer may be the one that says no.
bool is_refused_by_another(const Case& one, const std::string& inside, const SceneResult& strict) {
  return !strict.counted && (is_denial(inside) || (inside == "ENOSYS" && !stands_in(inside, one.control.then)));
}

Verdicted judge_inside(const Case& one, const std::string& expected, const SceneResult& strict,
                       const std::string& inside, const HostHalf& host) {
  if (inside != expected && !is_refused_by_another(one, inside, strict))
    return {CaseVerdict::escaped, (inside == "ok" ? "it worked" : "refused in another way: " + inside)};
  if (!one.shown.empty() && !shows(one, detail_of(one, strict)))
    return {CaseVerdict::escaped, "the probe told " + detail_of(one, strict) + ", not " + one.shown};
  if (!host.missing.empty()) return unknown(host.missing);
  if (!host.contradicts.empty()) return unknown("the host contradicts: " + host.contradicts);
  return {CaseVerdict::refused, ""};
}

// What this kernel has not is met as in the control, or the wall is met before. Any other end is one that nobody foresaw.
bool met_a_wall_or_nothing(const Case& one, const std::string& expected, const SceneResult& strict,
                           const SceneResult& control, const std::string& inside) {
  return inside == expected || inside == control_outcome(one, control) || is_refused_by_another(one, inside, strict);
}

}  // namespace

bool shows_no_difference(const Case& one, const SceneResult& control, const std::string& inside) {
  return one.control.verbs.empty() && one.control.host.empty() && inside == control_outcome(one, control);
}

namespace {

Verdicted verdict_of(const Case& one, const std::string& expected, const SceneResult& strict,
                     const SceneResult* control, const HostHalf& host) {
  if (!strict.fault.empty()) return unknown("there was no sandbox: " + strict.fault);
  if (!strict.broken_walls.empty()) return unknown("walls of its sandbox did not hold: " + strict.broken_walls);
  const auto inside = outcome_of(one, strict);
  if (!inside) return unknown("the probe told nothing of it");
  if (*inside == "missing") return unknown("the root file system has no program " + one.program);
  if (*inside == "unsupported" || *inside == "timeout") return unknown("the probe could not attempt it: " + *inside);
  if (one.limit) return judge_limit(one, expected, *inside);
  if (control == nullptr) return unknown("it has no control");
  if (const auto without = judge_control(one, *control, *inside))
    if (without->verdict != CaseVerdict::inapplicable ||
        met_a_wall_or_nothing(one, expected, strict, *control, *inside))
      return *without;
  const bool refused = *inside == expected || is_refused_by_another(one, *inside, strict);
  if (refused && shows_no_difference(one, *control, *inside))
    return {CaseVerdict::vacuous, "without the wall it came to the same, " + *inside};
  return judge_inside(one, expected, strict, *inside, host);
}

}  // namespace

void read_told(const std::string& text, const std::vector<std::string>& asked, SceneResult& scene) {
  std::size_t at = 0;
  const auto spoil = [&] {
    scene.told.clear();
    scene.whole = false;
  };
  for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = text.substr(at, end - at);
    const std::size_t tab = line.find('\t');
    if (scene.whole || tab == std::string::npos) return spoil();
    const std::string verb = line.substr(0, tab);
    const std::size_t second = line.find('\t', tab + 1);
    Told told{line.substr(tab + 1, second == std::string::npos ? second : second - tab - 1),
              second == std::string::npos ? "" : line.substr(second + 1)};
    if (verb == "end") {
      scene.whole = told.outcome == "ok";
      continue;
    }
    if (!stands_in(verb, asked) || !scene.told.emplace(verb, std::move(told)).second) return spoil();
  }
  if (at != text.size() && scene.whole) spoil();
}

std::map<std::string, std::string> ledger_differences(const std::vector<const Case*>& cases, const SceneResult& scene,
                                                      const HostFacts& host_facts) {
  std::map<std::string, std::uint64_t> refused, counted;
  for (const Case* one : cases) {
    if (one->ledger.empty()) continue;
    const auto told = scene.told.find(one->verb);
    refused[one->ledger] += told != scene.told.end() && told->second.outcome == one->expected_of(host_facts);
  }
  for (const json& row : json_at(scene.record, "/evidence/refusals/by_call")) {
    const std::string call = row.value("call", ""), argument = row.value("argument", "");
    const std::uint64_t count = row.value("count", std::uint64_t{0});
    counted[call] += count;
    if (!argument.empty()) counted[call + " " + argument] += count;
  }
  std::map<std::string, std::string> differences;
  for (const auto& [call, attempts] : refused) {
    const std::uint64_t seen = counted.contains(call) ? counted.at(call) : 0;
    if (seen != attempts)
      differences[call] = "the ledger has " + call + " " + std::to_string(seen) + " times, the probe was refused " +
                          std::to_string(attempts) + " times";
  }
  return differences;
}

CaseResult judge_case(const Case& one, const HostFacts& host_facts, const SceneResult& strict,
                      const SceneResult* control, const std::map<std::string, std::string>& ledger) {
  const std::string expected = one.expected_of(host_facts);
  const HostHalf host = host_half(one, strict, ledger);
  CaseResult result;
  result.id = one.id;
  result.check = one.check;
  result.wall = one.wall;
  result.attempt = one.attempt;
  result.asserts = one.asserts;
  result.expected = expected + (one.limit ? "" : " by " + one.layer) + (one.shown.empty() ? "" : ", " + one.shown);
  const std::string detail = detail_of(one, strict);
  result.inside = outcome_of(one, strict).value_or("nothing") + with_blank(detail);
  result.host = host.text;
  if (control != nullptr && !one.limit) {
    result.control = control_text(one.control) + ": " + control_outcome(one, *control).value_or("nothing");
    if (!one.program.empty()) result.control += with_blank(detail_of(one, *control)) + reached_text(one, *control);
  }
  auto judged = verdict_of(one, expected, strict, control, host);
  result.verdict = judged.verdict;
  result.reason = std::move(judged.reason);
  return result;
}

}  // namespace benchsand::conformance
