#include "conformance/judge_defaults.h"

#include <algorithm>
#include <array>

#include "conformance/judge_parts.h"
#include "oci/json_path.h"

namespace benchsand::conformance {

using nlohmann::json;

namespace {

constexpr const char* kWorked = "ok";
constexpr const char* kCollection = "collection";  // a layer: what benchsand takes of an output

// Nothing is there: refused, unless nothing would be there without the walls either.
constexpr std::array kAbsences = {"ENOENT",          "ENOSYS",          "empty",        "ECONNREFUSED",
                                  "ENETUNREACH",     "EHOSTUNREACH",    "EAFNOSUPPORT", "ETIMEDOUT",
                                  "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "ENODEV",       "EADDRNOTAVAIL"};
// Less than was asked for.
constexpr std::array kShortages = {"EAGAIN", "ENOSPC", "EDQUOT", "EMFILE", "ENOMEM", "SIGKILL"};

template <class List>
bool is_among(const std::string& outcome, const List& list) {
  return std::find(list.begin(), list.end(), outcome) != list.end();
}

struct Seen {
  std::string text, missing, contradicts;
  bool any = false;  // of the facts that the case names
};

void add(std::string& text, const std::string& words) {
  text += (text.empty() ? "" : "; ") + words;
}

void add_network(const Case& one, const json& record, Seen& seen) {
  const json& network = json_at(record, "/network");
  if (!leaves_the_host(one.verb) || !network.is_object()) return;
  add(seen.text, "a container of the engine's has links " + network.value("links", "") + ", routes " +
                     network.value("routes", ""));
  const json& sink = json_at(record, "/sink");
  if (sink.is_object())
    add(seen.text, "attempted in the suite's own network, where " + json_at(sink, "/connections").dump() +
                       " connections and " + json_at(sink, "/datagrams").dump() + " datagrams came");
}

Seen seen_of(const Case& one, const SceneResult& there) {
  Seen seen;
  for (const HostFact& fact : one.host) {
    const auto value = recorded(there.record, fact.place);
    add(value ? seen.text : seen.missing, fact.place + (value ? " " + *value : ""));
    seen.any = seen.any || value;
    if (value && !agrees(fact, *value)) add(seen.contradicts, fact.place + " is " + *value + ", not " + fact.value);
  }
  if (one.planted) {
    add(there.opened ? seen.text : seen.missing,
        there.opened ? "opened " + std::to_string(*there.opened) + " times" : "who opens the planted file");
    seen.any = seen.any || there.opened;
    if (there.opened && *there.opened != 0) add(seen.contradicts, "the planted file was opened");
  }
  add_network(one, there.record, seen);
  return seen;
}

// What benchsand lets through and makes harmless: only the host can tell.
Verdicted judge_effect(const std::string& inside, const Seen& seen) {
  if (inside != kWorked) return unknown("it came to " + inside + ", so there is no effect to look for");
  if (!seen.contradicts.empty()) return {CaseVerdict::escaped, seen.contradicts};
  if (!seen.any) return unknown("only a record of benchsand's would tell: " + seen.missing);
  return {CaseVerdict::refused, ""};
}

Verdicted judge_refusal(const Case& one, const SceneResult& there, const std::string& inside, bool foreseen,
                        const Seen& seen) {
  const bool refused = foreseen || is_denial(inside) || is_among(inside, kAbsences) || is_among(inside, kShortages);
  if (!refused) return unknown(inside + " is no refusal, and not what the attempt comes to without walls");
  if (!one.shown.empty() && !has_word(detail_of(one, there), one.shown))
    return {CaseVerdict::escaped, "the probe told " + detail_of(one, there) + ", not " + one.shown};
  if (!seen.contradicts.empty()) return unknown("the host contradicts: " + seen.contradicts);
  if (!seen.any && !seen.missing.empty()) return unknown("only a record of benchsand's would tell: " + seen.missing);
  return {CaseVerdict::refused, ""};
}

Verdicted verdict_of(const Case& one, const std::string& expected, const SceneResult& there, const SceneResult* control,
                     const Seen& seen) {
  if (!there.fault.empty()) return unknown("there was no container: " + there.fault);
  const auto inside = outcome_of(one, there);
  if (!inside) return unknown("the probe told nothing of it");
  if (*inside == "unsupported" || *inside == "timeout") return unknown("the probe could not attempt it: " + *inside);
  if (one.limit)
    return *inside == expected ? Verdicted{CaseVerdict::confirmed_limit,
                                           there.own_kernel ? "works here too, by another kernel" : "works here too"}
                               : Verdicted{CaseVerdict::limit_gone, "came to " + *inside};
  if (control == nullptr) return unknown("it has no control");
  const auto without = judge_control(one, *control, *inside);
  if (expected == kWorked && one.layer == kCollection)
    return {CaseVerdict::vacuous, "nobody takes anything out of the container there"};
  if (expected == kWorked) return without ? *without : judge_effect(*inside, seen);
  if (*inside == kWorked)
    return {CaseVerdict::escaped, there.own_kernel ? "it worked, by another kernel than the host's" : "it worked"};
  if (without && without->verdict == CaseVerdict::inapplicable) return *without;
  if (leaves_the_host(one.verb) && there.record.contains("sink") && is_among(*inside, kAbsences))
    return {CaseVerdict::vacuous, "let through into the suite's own network, where nothing is there: " + *inside};
  const bool as_without = stands_in(*inside, one.control.then);
  if (as_without && is_among(*inside, kAbsences))
    return {CaseVerdict::vacuous, "let through, and nothing was there: " + *inside + " without walls too"};
  if (as_without && there.own_kernel && !is_denial(*inside))
    return {CaseVerdict::vacuous, "another kernel's " + *inside + " does not tell whether it was let through"};
  if (as_without && !is_denial(*inside))
    return {CaseVerdict::escaped, "let through: it came to " + *inside + ", as without walls"};
  if (without) return *without;
  if (shows_no_difference(one, *control, *inside))
    return {CaseVerdict::vacuous, "without walls it came to the same, " + *inside};
  return judge_refusal(one, there, *inside, *inside == expected, seen);
}

}  // namespace

bool leaves_the_host(const std::string& verb) {
  std::string address;
  for (const std::string_view call : {"connect:", "send:"})
    if (verb.starts_with(call)) address = verb.substr(call.size());
  if (address.empty()) return false;
  return !address.starts_with("127.") && !address.starts_with("0.0.0.0:") && !address.starts_with("[::1]");
}

CaseResult judge_default_case(const Case& one, const HostFacts& host_facts, const SceneResult& there,
                              const SceneResult* control) {
  const std::string expected = one.expected_of(host_facts);
  const Seen seen = seen_of(one, there);
  CaseResult result;
  result.id = one.id;
  result.check = one.check;
  result.wall = one.wall;
  result.attempt = one.attempt;
  result.asserts = one.asserts;
  result.expected = one.limit ? expected : expected == kWorked ? "no effect" : "a refusal";
  const std::string detail = detail_of(one, there);
  result.inside = outcome_of(one, there).value_or("nothing") + (detail.empty() ? "" : " " + detail);
  result.host = seen.text;
  if (!seen.missing.empty()) add(result.host, "not seen without a record: " + seen.missing);
  if (!one.ledger.empty()) add(result.host, "not counted without a ledger");
  if (control != nullptr && !one.limit)
    result.control = control_text(one.control) + ": " + control_outcome(one, *control).value_or("nothing");
  auto judged = verdict_of(one, expected, there, control, seen);
  result.verdict = judged.verdict;
  result.reason = std::move(judged.reason);
  return result;
}

}  // namespace benchsand::conformance
