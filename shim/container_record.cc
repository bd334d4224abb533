#include "shim/container_record.h"

#include <cerrno>

#include "shim/record_store.h"
#include "shim/runtime_verbs.h"

namespace benchsand {

namespace {

nlohmann::json edits_json(const std::vector<Edit>& edits) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& edit : edits)
    list.push_back({{"field", printable(edit.field)},
                    {"from", printable(edit.from)},
                    {"to", printable(edit.to)},
                    {"wall", edit.wall}});
  return list;
}

// Null where there is none.
Result<nlohmann::json> newest_record(const std::string& container) {
  const auto store = TRY(RecordStore::open());
  const auto newest = store.look_up(container);
  if (!newest) return nullptr;
  return nlohmann::json::parse(TRY(sys::read_file(sys::kHere, newest->path)), nullptr, false);
}

Result<bool> has_record_of_run(const std::string& container, const nlohmann::json& run) {
  const auto record = TRY(newest_record(container));
  return record.is_object() && record.contains("id") && record["id"] == run;
}

}  // namespace

void note_edits(const std::string& verb, const std::vector<Edit>& edits, RunFacts& facts) {
  constexpr std::size_t kMost = 100;  // a container can be entered as often as the engine likes
  auto& list = facts.admission[verb];
  if (list.size() < kMost) list.push_back(edits_json(edits));
}

void note_container(const ContainerOrder& order, RunFacts& facts) {
  const ContainerState& state = order.state;
  // The name that `benchsand run` has asked the engine for, which not every engine hands on.
  const std::string name = order.front ? "benchsand-" + order.front->order.run_id : order.name;
  facts.container = ContainerFacts{state.id, name, state.root, state.bundle, order.admission.caller};
  nlohmann::json refusals = nlohmann::json::array();
  for (const auto& refusal : order.admission.refusals)
    refusals.push_back({{"wall", refusal.wall}, {"what", printable(refusal.what)}, {"cure", printable(refusal.cure)}});
  facts.admission = {{"edits", edits_json(order.admission.edits)}, {"refusals", refusals}};
}

Result<void> record_not_made(const Host& host, const ContainerOrder& order, const std::string& why) {
  RunFacts facts;
  facts.id = order.front ? order.front->order.run_id : "r" + TRY(sys::random_hex(12));
  facts.created = sys::utc_now();
  facts.delegate = host.delegate.facts;
  note_container(order, facts);
  const bool refused = !order.admission.refusals.empty();
  const End end{Cause::not_started, {}, {}, refused ? "" : why};
  Verdict verdict;
  if (refused)
    verdict.outcome = Outcome::refused;
  else
    verdict = judge({}, Evidence(), end, std::nullopt);
  for (const auto& refusal : order.admission.refusals)
    verdict.failures.push_back({refusal.wall, "what the profile " + order.state.profile + " allows", refusal.what,
                                "config.json of the engine"});
  return keep_record(make_record(order.policy, host.facts, facts, {}, Evidence(), end, verdict), order.state.id);
}

std::string recorded_fault(const std::string& container) {
  const auto record = newest_record(container);
  const auto place = nlohmann::json::json_pointer("/verdict/failures/0/observed");
  if (!record || !record->contains(place) || !(*record)[place].is_string()) return "";
  return (*record)[place].get<std::string>();
}

Result<void> keep_unfinished_record(const std::string& path) {
  const auto text = sys::read_file(sys::kHere, path);
  if (!text && text.error().error_number == ENOENT) return {};
  const auto record = nlohmann::json::parse(TRY(text), nullptr, false);
  const auto container = nlohmann::json::json_pointer("/container/id");
  if (!record.is_discarded() && record.contains(container) && record[container].is_string() && record.contains("id")) {
    const std::string id = record[container].get<std::string>();
    if (!TRY(has_record_of_run(id, record["id"]))) TRY_VOID(keep_record(record, id));
  }
  return sys::unlinkat(sys::kHere, path, 0);
}

Result<void> keep_record(const nlohmann::json& record, const std::string& container) {
  const auto store = TRY(RecordStore::open());
  TRY(store.store(record, container));
  TRY(store.rotate(TRY(load_runtime_settings()).keep));
  return {};
}

}  // namespace benchsand
