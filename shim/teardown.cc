#include "shim/teardown.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "oci/mountinfo.h"
#include "shim/attached_mounts.h"
#include "shim/container_processes.h"
#include "shim/container_record.h"
#include "shim/container_state.h"
#include "shim/front_desk.h"
#include "shim/image_cache.h"
#include "shim/result_folder.h"
#include "shim/rootfs_cache.h"

namespace benchsand {

namespace {

Result<std::string> gone_or_error(const Result<void>& removed) {
  if (removed) return std::string("gone");
  return std::unexpected(removed.error());
}

// The cgroup and the keeper are two ways to the same processes; what one misses, the other has.
void kill_processes(RunRemains& remains) {
  if (remains.cgroup)
    if (const auto killed = remains.cgroup->kill(); !killed) remains.fault = killed.error().message;
  if (remains.delegate)
    if (const auto killed = remains.delegate->kill(); !killed) remains.fault = killed.error().message;
}

void wait_for_processes(RunRemains& remains, Evidence& evidence) {
  if (!remains.delegate && remains.processes)
    evidence.take("teardown.pid_namespace", processes_gone(remains.processes), "the proc file system of the container");
  if (!remains.delegate) return;
  const bool keeper = remains.delegate->has_keeper();
  const auto ended = remains.delegate->wait_end();
  if (keeper || !ended)
    evidence.take("teardown.pid_namespace", gone_or_error(ended), "wait for its first process");
  else if (remains.processes)
    evidence.take("teardown.pid_namespace", processes_gone(remains.processes), "the proc file system of the container");
  remains.delegate.reset();
}

// Which mounts of this host's own namespace lie below the run folder, or where a run's mounts are attached in the keeper's.
Result<std::string> mounts_left(const std::string& path) {
  const std::string source = "/proc/self/mountinfo";
  std::string found;
  for (const auto& mount : TRY(parse_mountinfo(TRY(sys::read_file(sys::kHere, source)), source)))
    if (mount.target == path || mount.target.starts_with(path + "/") || mount.target.starts_with(kMountBase))
      found += (found.empty() ? "" : " ") + mount.target;
  return found.empty() ? "gone" : found;
}

Result<std::string> cgroups_gone(const CgroupHost& host, const std::string& id) {
  TRY_VOID(remove_run_cgroups(host, id));
  for (const auto& hierarchy : host.hierarchies())
    if (TRY(sys::exists(hierarchy.root.get(), std::string(kCgroupPrefix) + "/" + id)))
      return "still in " + hierarchy.mount;
  return std::string("gone");
}

Result<void> remove_results(const std::string& partial, const std::string& id) {
  const std::filesystem::path path(partial);
  if (path.filename() != ResultFolder::partial_name(id))
    return fault("remove " + partial + ": not the name of unfinished results of " + id);
  return sys::remove_tree(sys::kHere, partial);
}

}  // namespace

void tear_down(const Host& host, const std::string& delegate, RunRemains& remains, Evidence& evidence) {
  kill_processes(remains);
  if (!remains.folder) return wait_for_processes(remains, evidence);
  const std::string id = remains.folder->id(), path = remains.folder->path();
  evidence.take("teardown.cgroup", cgroups_gone(host.cgroup, id), "every cgroup hierarchy");
  wait_for_processes(remains, evidence);
  const auto state = sys::remove_tree(sys::kHere, delegate_state(delegate) + "/" + id);
  if (!state) remains.fault = state.error().message;
  evidence.take("teardown.mounts", mounts_left(path), "/proc/self/mountinfo");
  evidence.take("teardown.run_folder", gone_or_error(remains.folder->remove()), path);
}

Result<void> discard_results(RunRemains& remains) {
  if (remains.partial_results.empty() || !remains.folder) return {};
  TRY_VOID(remove_results(remains.partial_results, remains.folder->id()));
  return remains.folder->forget_results();
}

namespace {

// A monitor that was killed left what it would have us keep as the container's record, in two places.
Result<void> keep_unfinished(const std::string& id) {
  TRY_VOID(keep_unfinished_record(std::string(kRunBase) + "/" + id + "/" + kUnfinishedRecord));
  for (const auto& state : TRY(all_containers()))
    if (state.run_id == id) TRY_VOID(keep_unfinished_record(unfinished_record_of(state)));
  return {};
}

Result<void> clear_run(const CgroupHost& host, const std::string& id, const std::string& partial,
                       std::vector<std::string>& lines) {
  TRY_VOID(remove_run_cgroups(host, id));
  // Without a record there is no score; a full disk must not keep the rest from being cleared.
  if (const auto kept = keep_unfinished(id); !kept)
    lines.push_back("run " + id + ": no record of how it ended: " + kept.error().message);
  for (const char* delegate : {"crun", "runc"})
    TRY_VOID(sys::remove_tree(sys::kHere, delegate_state(delegate) + "/" + id));
  if (!partial.empty()) TRY_VOID(remove_results(partial, id));
  TRY_VOID(detach_mounts_below(std::string(kRunBase) + "/" + id));
  TRY_VOID(sys::remove_tree(sys::kHere, std::string(kRunBase) + "/" + id));
  TRY_VOID(remove_note(id));
  lines.push_back("cleared run " + id + (partial.empty() ? "" : " and its unfinished results " + partial));
  return {};
}

}  // namespace

Result<void> clear_dead_run(const std::string& id) {
  const auto host = TRY(CgroupHost::find());
  const Fd alone = TRY(lock_gc());
  std::vector<std::string> lines;
  for (const auto& run : TRY(dead_runs()))
    if (run.id == id) TRY_VOID(clear_run(host, run.id, run.partial_results, lines));
  return {};
}

namespace {

// An engine that is gone deletes nothing any more. One that lives keeps the bundle of what it has not deleted yet.
Result<void> forget_containers(const std::vector<std::string>& runs, std::vector<std::string>& lines) {
  for (const auto& state : TRY(all_containers())) {
    if (std::find(runs.begin(), runs.end(), state.run_id) != runs.end()) continue;
    if (TRY(sys::exists(sys::kHere, state.bundle))) continue;
    TRY_VOID(keep_unfinished_record(unfinished_record_of(state)));
    TRY_VOID(remove_container(state.root, state.id));
    lines.push_back("forgot container " + state.id + ": it has ended, and its bundle is gone");
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> collect_garbage() {
  const auto host = TRY(CgroupHost::find());
  const Fd alone = TRY(lock_gc());
  std::vector<std::string> lines;
  for (const auto& run : TRY(dead_runs())) TRY_VOID(clear_run(host, run.id, run.partial_results, lines));
  // A cgroup without a folder: /run was emptied under us, or another benchsand has a /run of its own (a container). What
  // still holds processes may be alive there, so it is named and left. A living run here has both; look at the folders second.
  const auto with_cgroup = TRY(host.run_ids());
  const auto known = TRY(all_runs());
  for (const auto& id : with_cgroup) {
    if (std::find(known.begin(), known.end(), id) != known.end()) continue;
    if (TRY(run_cgroup_populated(host, id)))
      lines.push_back("left the cgroup of run " + id + " alone: it holds processes and has no folder in " + kRunBase);
    else
      TRY_VOID(clear_run(host, id, "", lines));
  }
  TRY_VOID(forget_containers(TRY(all_runs()), lines));
  if (const auto left = TRY(remove_temporary_containers()); left != 0)
    lines.push_back("cleared " + std::to_string(left) + " half-made or half-removed entries in " + kContainerBase);
  for (auto& line : TRY(collect_order_garbage())) lines.push_back(std::move(line));
  for (auto& line : TRY(collect_rootfs_garbage())) lines.push_back(std::move(line));
  for (auto& line : TRY(collect_image_garbage())) lines.push_back(std::move(line));
  return lines;
}

}  // namespace benchsand
