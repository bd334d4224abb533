#include "shim/runtime_links.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "oci/runtime_settings.h"
#include "shim/load.h"
#include "shim/sys.h"

namespace benchsand {

namespace {

constexpr const char* kOwnLinks = "/usr/local/lib/benchsand/";
constexpr const char* kUsers = "/.used-by";  // in an engine's folder: a path of a file of that engine, one a line

// Engines execute it as root, so nobody else may be able to change it.
Result<std::string> find_runtime(const std::string& given) {
  std::error_code failed;
  const std::string wanted =
      given.empty()
          ? std::filesystem::read_symlink("/proc/self/exe", failed).replace_filename("benchsand-runtime").string()
          : given;
  const auto cannot = [&](const std::string& why) {
    return usage("find the runtime " + wanted + ": " + why + "; name benchsand-runtime with --runtime");
  };
  const std::string path = std::filesystem::canonical(wanted, failed).string();
  if (failed) return cannot(failed.message());
  const auto facts = TRY(sys::fstatat(sys::kHere, path, 0));
  if (!S_ISREG(facts.st_mode) || (facts.st_mode & 0111) == 0) return cannot("it is not a program");
  if (facts.st_uid != 0 || (facts.st_mode & 0022) != 0)
    return cannot("engines run it as root, but others than root may change it");
  return path;
}

// An engine would learn it from every container. The first line is enough: `benchsand limits --profile` has the rest.
std::optional<std::string> profile_problem(const std::string& name) {
  const auto read = [&]() -> Result<void> {
    const auto text = TRY(find_profile(name));
    TRY(parse_profile(text.text, text.name));
    return {};
  }();
  if (read) return std::nullopt;
  return "profile " + name + ": " + read.message().substr(0, read.message().find('\n'));
}

Result<std::vector<std::string>> profile_names(std::vector<std::string>& notices) {
  auto names = builtin_profile_names();
  const auto files = sys::list_directory(sys::kHere, kProfileDirectory);
  if (!files && files.error().error_number != ENOENT) return std::unexpected(files.error());
  for (const auto& file : files ? *files : std::vector<std::string>()) {
    if (!file.ends_with(".yaml")) continue;
    const std::string name = file.substr(0, file.size() - 5);
    if (name == "runtime")
      notices.push_back(kProfileDirectory + file + ": benchsand-runtime is the runtime's own name, for strict");
    else if (name == kPassthrough)
      notices.push_back(kProfileDirectory + file + ": by that name the runtime takes every wall down");
    else if (is_runtime_name("benchsand-" + name))
      names.push_back(name);
    else
      notices.push_back(kProfileDirectory + file +
                        ": the name of a runtime has small letters, digits, - and _, and at most 64 of them");
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::erase_if(names, [&](const std::string& name) {
    auto problem = profile_problem(name);
    if (problem) notices.push_back(std::move(*problem));
    return problem.has_value();
  });
  return names;
}

bool leads_to(const std::string& link, const std::string& runtime) {
  std::error_code failed;
  return std::filesystem::canonical(link, failed).string() == runtime;
}

}  // namespace

std::string links_folder(EngineKind engine) {
  return kOwnLinks + std::string(to_text(engine));
}

Result<LinkPlan> plan_links(EngineKind engine, const std::string& runtime) {
  LinkPlan plan;
  plan.runtime = TRY(find_runtime(runtime));
  const std::string shipped =
      (std::filesystem::path(plan.runtime).parent_path().parent_path() / "lib/benchsand/runtimes/").string();
  const auto profiles = TRY(profile_names(plan.notices));
  std::vector<std::string> names;
  if (std::find(profiles.begin(), profiles.end(), "strict") != profiles.end()) names.push_back("benchsand");
  for (const auto& profile : profiles) names.push_back("benchsand-" + profile);
  for (const auto& name : names) {
    if (leads_to(shipped + name, plan.runtime)) {
      plan.links.push_back({name, shipped + name, true});
    } else {
      const std::string path = links_folder(engine) + "/" + name;
      plan.links.push_back({name, path, leads_to(path, plan.runtime)});
    }
  }
  return plan;
}

Result<std::string> make_links(const LinkPlan& plan) {
  std::string report;
  for (const auto& link : plan.links) {
    if (link.stands) continue;
    std::error_code failed;
    std::filesystem::create_directories(std::filesystem::path(link.path).parent_path(), failed);
    // Under another name first: an engine that starts a container just now finds the old one or the new one.
    const std::string fresh = link.path + "." + TRY(sys::random_hex(6));
    if (!failed) std::filesystem::create_symlink(plan.runtime, fresh, failed);
    if (!failed) std::filesystem::rename(fresh, link.path, failed);
    if (failed) return fault("link " + link.path + " to " + plan.runtime + ": " + failed.message());
    report += "linked    " + link.path + "\n";
  }
  return report;
}

Result<std::vector<std::string>> own_links(EngineKind engine) {
  std::vector<std::string> paths;
  const auto names = sys::list_directory(sys::kHere, links_folder(engine));
  if (!names && names.error().error_number != ENOENT) return std::unexpected(names.error());
  for (const auto& name : names ? *names : std::vector<std::string>()) {
    const std::string path = links_folder(engine) + "/" + name;
    if (S_ISLNK(TRY(sys::fstatat(sys::kHere, path, AT_SYMLINK_NOFOLLOW)).st_mode)) paths.push_back(path);
  }
  return paths;
}

Result<std::vector<std::string>> users_of_links(EngineKind engine) {
  std::vector<std::string> files;
  const auto text = sys::read_file(sys::kHere, links_folder(engine) + kUsers);
  if (!text && text.error().error_number != ENOENT) return std::unexpected(text.error());
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) files.push_back(line);
  return files;
}

Result<void> note_users_of_links(EngineKind engine, const std::vector<std::string>& files) {
  std::string text;
  for (const auto& file : files) text += file + "\n";
  return sys::replace_file(links_folder(engine) + kUsers, text, 0644);
}

Result<std::string> remove_own_links(EngineKind engine) {
  std::string report;
  const auto forgotten = sys::unlinkat(sys::kHere, links_folder(engine) + kUsers, 0);
  if (!forgotten && forgotten.error().error_number != ENOENT) return std::unexpected(forgotten.error());
  for (const auto& path : TRY(own_links(engine))) {
    TRY_VOID(sys::unlinkat(sys::kHere, path, 0));
    report += "removed   " + path + "\n";
  }
  // Whatever else is in them keeps these two.
  for (const std::string& folder : {links_folder(engine), std::string(kOwnLinks)})
    if (const auto gone = sys::unlinkat(sys::kHere, folder, AT_REMOVEDIR);
        !gone && gone.error().error_number != ENOENT && gone.error().error_number != ENOTEMPTY)
      return std::unexpected(gone.error());
  return report;
}

}  // namespace benchsand
