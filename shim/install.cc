#include "shim/install.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "shim/config_file.h"
#include "shim/load.h"
#include "shim/runtime_links.h"

namespace benchsand {

namespace {

const char* default_config(EngineKind engine) {
  switch (engine) {
    case EngineKind::docker:
      return "/etc/docker/daemon.json";
    case EngineKind::podman:
      return "/etc/containers/containers.conf.d/benchsand.conf";
    case EngineKind::containerd:
      return "/etc/containerd/config.toml";
  }
  return "";
}

const char* next_step(EngineKind engine) {
  switch (engine) {
    case EngineKind::docker:
      return "now run   systemctl reload docker    (without systemd: kill -HUP $(cat /run/docker.pid))\n";
    case EngineKind::podman:
      return "Podman reads it at its next start\n";
    case EngineKind::containerd:
      return "now run   systemctl restart containerd    (running containers stay)\n";
  }
  return "";
}

// The files that Podman reads before ours: a list of ours takes the place of theirs.
Result<std::vector<std::string>> speak_json(const std::string& ours) {
  std::vector<std::string> paths = {"/usr/share/containers/containers.conf", "/etc/containers/containers.conf"};
  const std::string folder = "/etc/containers/containers.conf.d";
  const auto drop_ins = sys::list_directory(sys::kHere, folder);
  if (!drop_ins && drop_ins.error().error_number != ENOENT) return std::unexpected(drop_ins.error());
  if (drop_ins)
    for (const auto& name : *drop_ins)
      if (name.ends_with(".conf")) paths.push_back(folder + "/" + name);
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& path : paths) {
    if (path == ours) continue;
    auto text = sys::read_file(sys::kHere, path);
    if (text)
      files.emplace_back(path, std::move(*text));
    else if (text.error().error_number != ENOENT)
      return std::unexpected(text.error());
  }
  return podman_json_runtimes(files);
}

// Only for finding out what a removal leaves of a text.
const Registration& any_registration() {
  static const Registration kAny = {{{"benchsand", "/benchsand"}}, {}};
  return kAny;
}

// What a file becomes by an uninstall: nothing, when install had made it; to the byte what it was, when all that was
// done since is benchsand's.
struct Restored {
  bool absent = false, from_backup = false;
  std::string text;
};
Result<Restored> restored(EngineKind engine, const ConfigFile& file) {
  Restored result;
  result.text = TRY(remove_runtimes(engine, file.text(), file.path()));
  if (result.text == file.text()) return result;
  if (const auto backup = TRY(file.backup())) {
    const auto again = add_runtimes(engine, *backup, file.backup_path(), any_registration());
    const auto without = again ? remove_runtimes(engine, *again, file.backup_path()) : again;
    result.from_backup = without && *without == result.text;
    if (result.from_backup) result.text = *backup;
  }
  result.absent = result.text.empty() && !result.from_backup;
  return result;
}

std::string dry(const InstallRequest& request, std::string report, const ConfigFile& file, const std::string& text) {
  return report + "would write " + file.path() + "\n" + changed_lines(file.text(), text) +
         (request.uninstall ? "" : next_step(request.engine));
}

// Whether a file that has named links still does. One that cannot be understood may.
bool still_names_links(EngineKind engine, const std::string& path) {
  const auto file = ConfigFile::read(path);
  if (!file) return true;
  const auto without = remove_runtimes(engine, file->text(), path);
  return !without || *without != file->text();
}

// The other files of this engine that name its links.
Result<std::vector<std::string>> other_users(EngineKind engine, const ConfigFile& file) {
  auto users = TRY(users_of_links(engine));
  if (const std::string usual = default_config(engine); std::find(users.begin(), users.end(), usual) == users.end())
    users.push_back(usual);  // an older benchsand noted none
  std::erase_if(users, [&](const auto& path) { return path == file.path() || !still_names_links(engine, path); });
  return users;
}

// What another file names has to stay.
Result<std::string> let_go_of_links(EngineKind engine, const std::vector<std::string>& users) {
  if (users.empty()) return remove_own_links(engine);
  TRY_VOID(note_users_of_links(engine, users));
  std::string names;
  for (const auto& user : users) names += (names.empty() ? "" : ", ") + user;
  return "kept      the links in " + links_folder(engine) + ": they stand in " + names + "\n";
}

Result<std::string> uninstall(const InstallRequest& request, const ConfigFile& file) {
  const Restored result = TRY(restored(request.engine, file));
  const bool changed = result.text != file.text() || result.absent;
  const auto users = TRY(other_users(request.engine, file));
  const auto links = users.empty() ? TRY(own_links(request.engine)) : std::vector<std::string>();
  if (!changed && links.empty()) return std::string("nothing to do: benchsand is not in " + file.path() + "\n");
  if (request.dry_run) {
    std::string report;
    for (const auto& link : links) report += "would remove " + link + "\n";
    if (result.absent) return report + "would remove " + file.path() + "\n";
    return changed ? dry(request, report, file, result.text) : report;
  }
  std::string report;
  if (result.absent) {
    TRY_VOID(file.remove());
    report = "removed   " + file.path() + "\n";
  } else if (changed) {
    TRY_VOID(file.write(result.text));
    report = "wrote     " + file.path() + "\n";
  }
  if (result.from_backup) {
    TRY_VOID(file.remove_backup());
    report += "removed   " + file.backup_path() + "\n";
  } else if (TRY(file.backup())) {
    report += "kept      " + file.backup_path() + ": the file as it was before, for others have changed it since\n";
  }
  report += TRY(let_go_of_links(request.engine, users));
  return report + next_step(request.engine);
}

// A file with nothing of benchsand in it is what an uninstall has to give back.
Result<std::string> keep_backup(const InstallRequest& request, const ConfigFile& file) {
  if (!file.exists()) return std::string();
  if (TRY(remove_runtimes(request.engine, file.text(), file.path())) != file.text()) return std::string();
  TRY_VOID(file.keep_backup());
  return "kept      " + file.backup_path() + "\n";
}

// Before the file names a link; links that came with the program are not ours to take away.
Result<void> note_user(EngineKind engine, const ConfigFile& file) {
  if (TRY(own_links(engine)).empty()) return {};
  auto users = TRY(other_users(engine, file));
  users.push_back(file.path());
  std::sort(users.begin(), users.end());
  return users == TRY(users_of_links(engine)) ? Result<void>() : note_users_of_links(engine, users);
}

Result<std::string> install(const InstallRequest& request, const ConfigFile& file) {
  const auto plan = TRY(plan_links(request.engine, request.runtime));
  Registration registration;
  for (const auto& link : plan.links) registration.runtimes.push_back({link.name, link.path});
  if (request.engine == EngineKind::podman) registration.speak_json = TRY(speak_json(file.path()));
  const std::string text = TRY(add_runtimes(request.engine, file.text(), file.path(), registration));
  std::string report;
  for (const auto& notice : plan.notices) report += "left out  " + notice + "\n";
  const bool links_stand =
      std::all_of(plan.links.begin(), plan.links.end(), [](const auto& one) { return one.stands; });
  if (text == file.text() && links_stand && !request.dry_run) TRY_VOID(note_user(request.engine, file));
  if (text == file.text() && links_stand) return report + "nothing to do: " + file.path() + " has it all\n";
  if (request.dry_run) {
    for (const auto& link : plan.links)
      if (!link.stands) report += "would link " + link.path + " to " + plan.runtime + "\n";
    return dry(request, report, file, text);
  }
  // The paths first: an engine that is reloaded in between finds all that its file names.
  report += TRY(make_links(plan));
  TRY_VOID(note_user(request.engine, file));
  if (text == file.text()) return report;
  report += TRY(keep_backup(request, file));
  TRY_VOID(file.write(text));
  report += "wrote     " + file.path() + "\n";
  for (const auto& runtime : registration.runtimes) report += "runtime   " + runtime.name + "\n";
  return report + next_step(request.engine);
}

// A mistyped --config would make a file that no engine reads.
Result<void> require_given_file(const InstallRequest& request, const ConfigFile& file) {
  const std::string usual = default_config(request.engine);
  if (request.config.empty() || file.exists() || request.config == usual) return {};
  if (request.uninstall && TRY(own_links(request.engine)).empty()) return {};
  return usage("find " + file.path() + ": it is not there; if " + to_text(request.engine) +
               " reads it, make it first (it may be empty), and if not, leave out --config: it is " + usual);
}

}  // namespace

Result<std::string> install_runtime(const InstallRequest& request) {
  if (!request.dry_run && ::geteuid() != 0)
    return fault(std::string("register with ") + to_text(request.engine) +
                 ": benchsand install must be root; use sudo, or --dry-run to see what it would do");
  const std::string path = request.config.empty() ? default_config(request.engine) : request.config;
  const auto file = TRY(ConfigFile::read(std::filesystem::absolute(path).string()));
  TRY_VOID(require_given_file(request, file));
  return request.uninstall ? uninstall(request, file) : install(request, file);
}

}  // namespace benchsand
