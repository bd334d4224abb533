// What the engine's calls say to the monitor, and what they are answered.
#include <poll.h>

#include <array>
#include <cerrno>

#include "oci/admit_exec.h"
#include "oci/tighten.h"
#include "shim/container_record.h"
#include "shim/monitor_class.h"

namespace benchsand {

using nlohmann::json;

// 4b. The container is created, and nothing of the candidate's has run. It may stay so for as long as the engine likes.
Result<void> Monitor::wait_for_start() {
  for (;;) {
    std::array<pollfd, 3> waits = {
        {{desk_->fd().get(), POLLIN, 0}, {init_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) return sys_error("poll", "the container", errno);
    if (waits[2].revents != 0) return fault("start the container: benchsand was told to stop");
    if (waits[1].revents != 0) return fault("start the container: its init ended before it was started");
    if (waits[0].revents != 0 && TRY(heard_start())) return {};
  }
}

Result<bool> Monitor::heard_start() {
  const auto heard = desk_->hear();
  if (!heard || !*heard) return false;
  if ((*heard)->message.is_null()) {
    if (left((*heard)->caller)) return fault("start the container: the benchsand that ordered it has ended");
    return false;  // whoever it was, it was not a start
  }
  if ((*heard)->message.value("do", "") != "start") {
    TRY_VOID(answer_too_early(**heard));
    return false;
  }
  starter_ = (*heard)->caller;
  TRY_VOID(kept_);
  TRY_VOID(desk_->say(starter_, {{"go", true}}));
  return true;
}

Result<void> Monitor::answer_too_early(const ControlDesk::Heard& heard) {
  if (heard.message.value("do", "") == "delete") return fault("start the container: it was deleted before");
  static_cast<void>(desk_->say(heard.caller, {{"error", "the container is not running"}}));
  return {};
}

// runc has handed the seccomp fd over in its create. crun's init has connected by then and sends it in crun's start, which the
// engine's call runs now. If that call is killed, what comes next never comes: so each step hears who calls, to the first question of init's.
Result<void> Monitor::wait_for_listener() {
  const std::uint64_t deadline = sys::monotonic_us() + kStartWithinUs;
  TRY_VOID(wait_while_starting(listener_->fd(), deadline));
  const auto connection = listener_->accept_connection();
  if (!connection) return delegate_failed(connection.error().message);
  TRY_VOID(wait_while_starting(*connection, deadline));
  TRY_VOID(take_notify(receive_seccomp_fd(*connection, facts_.id)));
  return wait_while_starting(notify_.fd(), deadline);
}

// Until the descriptor is readable.
Result<void> Monitor::wait_while_starting(const Fd& fd, std::uint64_t deadline_us) {
  for (;;) {
    std::array<pollfd, 4> waits = {
        {{fd.get(), POLLIN, 0}, {desk_->fd().get(), POLLIN, 0}, {init_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}}};
    const std::uint64_t now = sys::monotonic_us();
    const int n =
        now < deadline_us ? ::poll(waits.data(), waits.size(), static_cast<int>((deadline_us - now) / 1000 + 1)) : 0;
    if (n < 0 && errno != EINTR) return sys_error("poll", "the seccomp listener", errno);
    if (n == 0)
      return fault("start the container: " + facts_.delegate.name + " did not come to the candidate's exec in time");
    if (n < 0) continue;
    if (waits[0].revents != 0) return {};
    if (waits[2].revents != 0) return delegate_failed("its init ended before the candidate could start");
    if (waits[3].revents != 0) return fault("start the container: benchsand was told to stop");
    if (waits[1].revents != 0) TRY_VOID(hear_while_starting());
  }
}

Result<void> Monitor::hear_while_starting() {
  const auto heard = desk_->hear();
  if (!heard || !*heard) return {};
  const auto& [caller, message] = **heard;
  if (message.is_null() && left(caller)) return fault("start the container: the benchsand that ordered it has ended");
  if (caller != starter_) return message.is_null() ? Result<void>() : answer_too_early(**heard);
  if (message.is_null()) return fault("start the container: the call of the engine was ended");
  if (const auto why = message.find("failed"); why != message.end())
    return fault("start the container with " + facts_.delegate.name + ": " + why->get<std::string>());
  return {};
}

// What a caller did wrong is its own; what it was let begin ends with it.
Result<std::optional<Cause>> Monitor::hear_calls() {
  const auto heard = desk_->hear();
  if (!heard || !*heard) return std::nullopt;
  const int caller = (*heard)->caller;
  const json& message = (*heard)->message;
  if (message.is_null()) return left(caller);
  const std::string wish = message.value("do", "");
  if (wish == "delete") {
    if (caller == owner_) told_to_stop_ = message.value("why", "");
    return Cause::killed;
  }
  json answer = {{"error", "the container is already running"}};
  if (wish == "exec") answer = begin_exec(caller, message);
  if (wish == "update") answer = begin_update(caller, message);
  if (wish == "updated") answer = end_update(caller, message);
  if (!desk_->say(caller, answer)) return left(caller);
  return std::nullopt;
}

// Nobody waits for a run whose front end is gone.
std::optional<Cause> Monitor::left(int caller) {
  if (execs_.erase(caller) > 0) exec_doors_->over();
  updates_.erase(caller);
  return caller == owner_ ? std::optional(Cause::killed) : std::nullopt;
}

json Monitor::begin_exec(int caller, const json& message) {
  std::string text = message.value("process", "");  // as it is: keys that stand twice are to be found
  if (message.contains("environment")) {
    auto process = json::parse(text);
    process["env"] = policy_.env;
    for (const auto& variable : message["environment"]) process["env"].push_back(variable);
    text = process.dump();
  }
  const auto admitted = admit_exec(text, policy_, limits_at_the_door_);
  if (!admitted) return {{"error", "exec: " + admitted.error().message}};
  if (!admitted->refusals.empty()) return {{"error", "exec: " + refusal_text(admitted->refusals)}};
  // The delegate's own tasks count while it brings the process in, and no candidate must lose its score by that.
  constexpr std::uint64_t kDelegatesTasks = 8;
  const auto tasks = remains_.cgroup->tasks();
  if (!tasks) return {{"error", "exec: " + tasks.error().message}};
  if (tasks->size() + kDelegatesTasks > policy_.limits.processes)
    return {{"error", "exec: the container has " + std::to_string(tasks->size()) + " of its " +
                          std::to_string(policy_.limits.processes) + " tasks, and bringing one in takes up to " +
                          std::to_string(kDelegatesTasks) + "; try again when there are fewer, or give it more"}};
  if (!execs_.insert(caller).second) return {{"error", "exec: one at a time"}};
  exec_doors_->expect();
  note_edits("exec", admitted->edits, facts_);
  return {{"process", admitted->process.dump()}};
}

json Monitor::begin_update(int caller, const json& message) {
  const auto tightened =
      tighten(message.value("resources", ""), policy_, order_.memory_headroom_bytes, host_.facts, bundle_places());
  if (!tightened) return {{"error", "update: " + tightened.error().message}};
  if (!tightened->refusals.empty()) return {{"error", "update: " + refusal_text(tightened->refusals)}};
  updates_[caller] = tightened->limits;
  note_edits("update", tightened->edits, facts_);
  return {{"resources", tightened->resources.dump()}};
}

// From now on the end is compared with the new limits. What was used before may be more than they allow.
json Monitor::end_update(int caller, const json& message) {
  const auto found = updates_.find(caller);
  if (found == updates_.end()) return {{"error", "update: none was begun"}};
  if (message.value("done", false)) {
    policy_.limits = found->second;
    for (auto& rule : wall_rules(policy_, host_.facts))
      for (auto& known : rules_)
        if (rule.key.ends_with(".end") && known.key == rule.key) known = rule;
    facts_.notices.push_back("the engine made the limits of the container tighter while it ran (admission.update)");
  }
  updates_.erase(found);
  return {{"updated", true}};
}

}  // namespace benchsand
