#include "shim/load.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <system_error>

#include "oci/image_notices.h"
#include "oci/sha256.h"
#include "oci/yaml_reader.h"
#include "shim/builtin_profiles.h"
#include "shim/image_cache.h"
#include "shim/run_folder.h"
#include "shim/seccomp_notify.h"

namespace benchsand {

namespace {

std::string builtin_names() {
  std::string names;
  for (const auto& name : builtin_profile_names()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

// Also those of this house.
std::vector<std::string> known_names() {
  auto names = builtin_profile_names();
  if (const auto files = sys::list_directory(sys::kHere, kProfileDirectory))
    for (const auto& file : *files)
      if (file.ends_with(".yaml")) names.push_back(file.substr(0, file.size() - 5));
  return names;
}

// A caller's input that cannot be read is the caller's error.
Result<std::string> read_input(const std::string& what, const std::string& path) {
  auto text = sys::read_file(sys::kHere, path);
  if (!text) return usage("read the " + what + ": " + text.error().message);
  return text;
}

ProfileText profile_file(std::string text, std::string name) {
  std::string sha256 = sha256_hex(text);
  return {std::move(text), std::move(name), std::move(sha256)};
}

// The parser's error, and what the image itself would start, if that is to be had.
std::unexpected<Error> no_command(const TaskSpec& task, const std::filesystem::path& directory) {
  ImageRef image = *task.image;
  image.path = (directory / image.path).string();
  const auto source = image.form == ImageForm::stored ? Result<ImageSource>(usage("")) : ImageSource::open(image);
  const std::string suggested = source ? suggested_command(source->config()) : "";
  return usage(task.command_missing + (suggested.empty() ? "" : "\nthe image itself would start " + suggested));
}

}  // namespace

std::vector<std::string> builtin_profile_names() {
  std::vector<std::string> names;
  for (const auto& profile : kBuiltinProfiles) names.emplace_back(profile.name);
  return names;
}

Result<ProfileText> find_profile(const std::string& name) {
  if (name.find('/') != std::string::npos) return profile_file(TRY(read_input("profile", name)), name);
  const std::string path = kProfileDirectory + name + ".yaml";
  auto text = sys::read_file(sys::kHere, path);
  if (text) return profile_file(std::move(*text), path);
  if (text.error().error_number != ENOENT) return std::unexpected(text.error());
  for (const auto& profile : kBuiltinProfiles)
    if (name == profile.name)
      return ProfileText{std::string(profile.text), "profile " + name, std::string(profile.sha256)};
  return usage("find the profile '" + name + "': not in " + kProfileDirectory + ", and the built-in ones are " +
               builtin_names() + did_you_mean(name, known_names()));
}

Result<Documents> load_documents(const TaskRequest& request) {
  const std::string text = TRY(read_input("task", request.task_path));
  Documents documents;
  documents.task = TRY(parse_task_spec(text, request.task_path));
  TaskSpec& task = documents.task;
  std::error_code failed;
  const auto path = std::filesystem::canonical(request.task_path, failed);
  if (failed) return usage("find the task " + request.task_path + ": " + failed.message());
  if (!task.command_missing.empty()) return no_command(task, path.parent_path());
  for (const auto& setting : request.settings) TRY_VOID(apply_setting(task, setting));
  // A task is not trusted to bring its own rules: it names a profile of this house, only the operator may give a path.
  if (task.profile && task.profile->find('/') != std::string::npos)
    return usage(task.place_of("profile") + "profile '" + *task.profile +
                 "' is a path; a task can only name a profile (use --profile for a file)");
  const std::string asked = request.profile ? *request.profile : task.profile ? *task.profile : "strict";
  auto found = find_profile(asked);
  if (!found && !request.profile) found.error().message = task.place_of("profile") + found.error().message;
  documents.profile_text = TRY(found);
  documents.profile_text.request =
      asked.find('/') == std::string::npos ? asked : std::filesystem::canonical(asked, failed).string();
  if (failed) return usage("find the profile " + asked + ": " + failed.message());
  documents.profile = TRY(parse_profile(documents.profile_text.text, documents.profile_text.name));
  documents.source = {sha256_hex(text), path.parent_path().string()};
  return documents;
}

Result<Policy> decide_policy(const Documents& documents, const HostFacts& host) {
  return decide(documents.task, documents.source, documents.profile, documents.profile_text.sha256, host);
}

Result<Policy> load_policy(const TaskRequest& request, const HostFacts& host) {
  auto policy = TRY(decide_policy(TRY(load_documents(request)), host));
  TRY_VOID(settle_image(request, policy));
  return policy;
}

Result<void> settle_image(const TaskRequest& request, Policy& policy) {
  if (!request.unpack_stored || !policy.image || policy.image->form != ImageForm::stored) return {};
  const auto cache = policy.image->digest.empty() ? std::nullopt : TRY(ImageCache::find());
  if (cache && TRY(cache->use(policy.image->digest, to_text(*policy.image))))
    policy.image_digest = policy.image->digest;
  else
    policy.image_digest = TRY(request.unpack_stored(*policy.image));
  return {};
}

HostFacts host_facts(CgroupLayout layout, const DelegateFacts& delegate) {
  utsname names{};
  ::uname(&names);
  const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  return {layout, names.release, delegate.name, delegate.version,
          processors > 0 ? static_cast<std::uint64_t>(processors) : 1};
}

// crun's own rule; its message comes too late and names no cure.
Result<void> delegate_fits(const CgroupHost& cgroup, const std::string& engine) {
  if (cgroup.layout() != CgroupLayout::hybrid || !cgroup.has_unified() || engine != "crun" ||
      cgroup.unified_controllers().empty())
    return {};
  const std::string controller = *cgroup.unified_controllers().begin(), place = "/sys/fs/cgroup/" + controller;
  return fault("use crun on this hybrid cgroup host: the cgroup2 tree still holds " + controller +
               ", which crun refuses; mount it on v1: mkdir -p " + place + " && mount -t cgroup -o " + controller +
               " cgroup " + place);
}

Result<Host> require_host(const std::string& engine) {
  if (::geteuid() != 0)
    return fault("start a run: benchsand must be root to make cgroups and to look at them; use sudo");
  std::string missing;
  const auto note = [&](const std::string& message) { missing += (missing.empty() ? "" : "\n") + message; };
  if (const auto notify = require_seccomp_notify(); !notify) note(notify.error().message);
  auto cgroup = CgroupHost::find();
  if (!cgroup)
    note(cgroup.error().message);
  else if (const auto fits = delegate_fits(*cgroup, engine); !fits)
    note(fits.error().message);
  if (const auto made = make_base_folders(); !made) note(made.error().message);
  if (!missing.empty()) return fault(missing);
  auto delegate = TRY(find_delegate(engine, kDelegateCache));
  const auto facts = host_facts(cgroup->layout(), delegate.facts);
  return Host{std::move(*cgroup), std::move(delegate), facts};
}

}  // namespace benchsand
