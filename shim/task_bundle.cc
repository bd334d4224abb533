#include "shim/task_bundle.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "oci/bundle.h"
#include "shim/rootfs.h"

namespace benchsand {

Result<std::string> write_task_bundle(const TaskRequest& task, const HostFacts& host, const std::string& directory) {
  auto policy = TRY(load_policy(task, host));
  TRY_VOID(check_task_files(policy));
  auto rootfs = TRY(open_task_rootfs(policy));
  TRY_VOID(prepare_mount_points(rootfs, policy));
  TRY_VOID(require_nothing_to_lay_over(rootfs));
  std::error_code failed;
  std::filesystem::create_directories(directory + "/output", failed);
  if (failed) return usage("make the bundle " + directory + ": " + failed.message());
  const std::string dir = std::filesystem::canonical(directory).string();
  BundlePlaces places;
  places.rootfs = rootfs.path;
  places.output = dir + "/output";
  places.swap_file_exists = false;
  const std::string config = render_bundle(policy, host, places);
  if (const auto made = sys::create_file(sys::kHere, dir + "/config.json", config, 0644); !made)
    return usage("make the bundle " + directory + ": " + made.error().message + "; a bundle is never overwritten");
  if (::chown((dir + "/output").c_str(), policy.uid, policy.gid) != 0)
    return sys_error("chown", dir + "/output", errno);
  return dir + "/config.json\nRun it with: " + host.delegate_name + " run --bundle " + dir + " NAME" +
         (policy.stdin_file.empty() ? "" : " < " + policy.stdin_file) + "\n";
}

}  // namespace benchsand
