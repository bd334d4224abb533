#include "oci/record.h"

#include "oci/sha256.h"
#include "oci/text.h"
#include "oci/without_runtime.h"

namespace benchsand {

using nlohmann::json;

namespace {

json printable_list(const std::vector<std::string>& list) {
  json result = json::array();
  for (const auto& item : list) result.push_back(printable(item));
  return result;
}

json value_json(const Value& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  return printable(std::get<std::string>(value));
}

// {wall: {name: {expected, observed|null, missing, source}}}
json section_json(const std::vector<Rule>& rules, const Evidence& evidence, Section section) {
  json result = json::object();
  for (const auto& rule : rules) {
    const Observation* observation = evidence.find(rule.key);
    if (rule.section != section || !observation) continue;
    json entry = {{"expected", rule.expected}, {"source", printable(observation->source)}, {"observed", nullptr}};
    if (const Value* value = observation->value())
      entry["observed"] = value_json(*value);
    else
      entry["missing"] = printable(std::get<Missing>(observation->seen).why);
    if (is_forgiven(rule, observation)) entry["forgiven"] = kForgiven;
    result[rule.wall][rule.key.substr(rule.wall.size() + 1)] = std::move(entry);
  }
  return result;
}

// Which calls were refused by the supervisor, each as often as its answer reached the candidate.
json refusals_json(const std::vector<RefusedCalls>& refused, std::uint64_t voided, const Evidence& evidence) {
  json by_call = json::array();
  for (const auto& entry : refused) {
    json row = {{"call", entry.call}, {"errno", errno_name(entry.errno_value)}, {"count", entry.count}};
    if (!entry.argument.empty()) row["argument"] = entry.argument;
    by_call.push_back(std::move(row));
  }
  const auto number = [&](const char* key) {
    const Observation* observation = evidence.find(key);
    return observation && observation->value() ? value_json(*observation->value()) : json(nullptr);
  };
  return {{"by_call", by_call},
          {"total", number("syscalls.refused_calls")},
          {"voided", voided},
          {"sockets", number("network.refused_sockets")},
          {"egress_bytes", number("network.egress_bytes")}};
}

json stream_json(const StreamFacts& stream) {
  return {{"bytes", stream.bytes}, {"kept", stream.kept}, {"sha256", stream.sha256}};
}

json verdict_json(const Verdict& verdict) {
  json failures = json::array();
  for (const auto& f : verdict.failures)
    failures.push_back({{"wall", f.wall},
                        {"expected", printable(f.expected)},
                        {"observed", printable(f.observed)},
                        {"source", printable(f.source)}});
  json result = {
      {"scored", verdict.scored}, {"outcome", to_text(verdict.outcome)}, {"failures", failures}, {"tier", nullptr}};
  if (verdict.tier) result["tier"] = *verdict.tier;
  return result;
}

json end_json(const End& end) {
  json result = {{"cause", to_text(end.cause)}, {"exit_code", nullptr}, {"signal", nullptr}};
  if (end.exit_code) result["exit_code"] = *end.exit_code;
  if (end.signal) result["signal"] = *end.signal;
  return result;
}

// How a key that holds a plain number names its unit.
const char* unit_suffix(Unit unit) {
  switch (unit) {
    case Unit::duration_us:
      return "_us";
    case Unit::bytes:
      return "_bytes";
    case Unit::milli:
      return "_milli";
    case Unit::count:
      return "";
  }
  return "";
}

json counters_json(const std::vector<EgressCounter>& counters) {
  json result = json::array();
  for (const auto counter : counters) result.push_back(to_text(counter));
  return result;
}

json rules_json(const SeccompRules& rules) {
  json conditional = json::array();
  for (const auto& rule : rules.allow_if)
    // As text: a mask of 64 one-bits is no integer that every JSON reader keeps.
    conditional.push_back({{"call", rule.call},
                           {"arg", rule.index},
                           {"mask", std::to_string(rule.mask)},
                           {"is", [&] {
                              json values = json::array();
                              for (const auto value : rule.values) values.push_back(std::to_string(value));
                              return values;
                            }()}});
  json refused = json::object();
  for (const auto& [name, calls] : rules.refuse_with) refused[name] = calls;
  return {{"default", rules.learn ? "notify" : rules.default_errno},
          {"allow", rules.allow},
          {"allow_if", conditional},
          {"refuse_with", refused},
          {"notify", rules.notify}};
}

json image_json(const Policy& policy) {
  if (!policy.image) return nullptr;
  return {{"reference", printable(to_text(*policy.image))},
          {"digest", policy.image_digest.empty() ? json() : json(policy.image_digest)}};
}

json container_json(const std::optional<ContainerFacts>& container) {
  if (!container) return nullptr;
  return {{"id", printable(container->id)},
          {"name", printable(container->name)},
          {"root", printable(container->root)},
          {"bundle", printable(container->bundle)},
          {"caller", printable(container->caller)}};
}

}  // namespace

std::string printable(const std::string& bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = utf8_length(bytes, at);
    if (length == 0) {
      text += escaped_bytes(bytes, at++, 1);
      continue;
    }
    if (bytes[at] == '\\') text += '\\';
    text.append(bytes, at, length);
    at += length;
  }
  return text;
}

json policy_json(const Policy& policy) {
  json inputs = json::array();
  for (const auto& input : policy.inputs)
    inputs.push_back({{"source", printable(input.source)}, {"target", printable(input.target)}});
  json limits = json::object();
  for (const auto& field : kLimitFields)
    limits[std::string(field.name) + unit_suffix(field.unit)] = policy.limits.*field.member;
  return {
      {"command", printable_list(policy.command)},
      {"env", printable_list(policy.env)},
      {"workdir", printable(policy.workdir)},
      {"rootfs", printable(policy.rootfs)},
      {"image", image_json(policy)},
      {"stdin", printable(policy.stdin_file)},
      {"inputs", inputs},
      {"output", printable(policy.output)},
      {"limits", limits},
      {"stdio_total_bytes", policy.stdio_total_bytes},
      {"collect", {{"files", policy.collect.files}, {"bytes", policy.collect.bytes}, {"depth", policy.collect.depth}}},
      {"uid", policy.uid},
      {"gid", policy.gid},
      {"masked_paths", policy.masked_paths},
      {"readonly_paths", policy.readonly_paths},
      {"filter_proof", policy.filter_proof == FilterProof::dump ? "dump" : "compiled"},
      {"refusals", {{"total", policy.refusals.total}, {"per_second", policy.refusals.per_second}}},
      {"rootfs_mount", to_text(policy.rootfs_mount)},
      {"egress_counters", counters_json(policy.egress_counters)},
      {"user_namespace", to_text(policy.user_namespace)},
      {"exec", to_text(policy.exec)},
      {"without_runtime", policy.without_runtime},
      {"plain", policy.plain},
      {"terminal", policy.terminal},
      {"cpuset", policy.cpuset.empty() ? json() : json(policy.cpuset)},
      {"seccomp", rules_json(policy.seccomp)},
      {"timeline_us", policy.timeline_us ? json(*policy.timeline_us) : json()},
      {"relaxations", policy.relaxations},
  };
}

json make_record(const Policy& policy, const HostFacts& host, const RunFacts& run, const std::vector<Rule>& rules,
                 const Evidence& evidence, const End& end, const Verdict& verdict) {
  json outputs = json::array(), refused = json::array();
  for (const auto& file : run.outputs)
    outputs.push_back({{"path", printable(file.path)}, {"size", file.size}, {"sha256", file.sha256}});
  for (const auto& file : run.outputs_refused)
    refused.push_back({{"path", printable(file.path)}, {"reason", printable(file.reason)}});
  json record = {
      {"schema", "benchsand.record/v1"},
      {"benchsand", {{"version", BENCHSAND_VERSION}}},
      {"id", run.id},
      {"created", run.created},
      {"task", {{"name", policy.task_name}, {"sha256", policy.task_sha256}}},
      {"profile", {{"name", policy.profile_name}, {"sha256", policy.profile_sha256}}},
      {"policy", policy_json(policy)},
      {"notices", printable_list(policy.notices)},
      {"engine",
       {{"name", run.container ? run.container->caller : run.delegate.name},
        {"delegate",
         {{"name", run.delegate.name}, {"version", run.delegate.version}, {"sha256", run.delegate.sha256}}}}},
      {"host", {{"kernel", host.kernel}, {"cgroup", to_text(host.cgroup)}, {"processors", host.processors}}},
      {"bundle", {{"config_sha256", run.config_sha256}}},
      {"evidence",
       {{"established", section_json(rules, evidence, Section::established)},
        {"spent", section_json(rules, evidence, Section::spent)},
        {"refusals", refusals_json(run.refusals, run.refusals_voided, evidence)},
        {"after", section_json(rules, evidence, Section::after)}}},
      {"end", end_json(end)},
      {"verdict", verdict_json(verdict)},
      {"verification", nullptr},
      {"outputs", outputs},
      {"outputs_refused", refused},
      {"outputs_refused_more", run.outputs_refused_more},
      {"stdout", stream_json(run.stdout_stream)},
      {"stderr", stream_json(run.stderr_stream)},
      {"timeline", run.timeline},
      {"container", container_json(run.container)},
      {"admission", run.admission},
  };
  for (const auto& notice : run.notices) record["notices"].push_back(printable(notice));
  record["digest"] = record_digest(record);
  return record;
}

std::string canonical_json(const json& value) {
  // nlohmann::json objects are sorted maps; ASCII keys and integers make its dump the canonical form of RFC 8785.
  return value.dump(-1, ' ', true);
}

std::string record_digest(const json& record) {
  json without = record;
  without.erase("digest");
  return sha256_hex(canonical_json(without));
}

bool digest_matches(const json& record) {
  return record.is_object() && record.contains("digest") && record["digest"].is_string() &&
         record["digest"].get<std::string>() == record_digest(record);
}

}  // namespace benchsand
