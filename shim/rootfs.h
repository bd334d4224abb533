// The root file system a task names: a directory, or a tar archive that is unpacked once into a cache keyed by its digest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "oci/policy.h"
#include "shim/sys.h"

namespace benchsand {

struct MountPlace {
  std::string path;
  bool directory = true;
};

// What becomes of a place that a rootfs lacks for a mount of the run, or for its working directory.
enum class Lacking {
  refused,    // it is an operator's directory
  laid_over,  // it was unpacked for every run of the archive or image: a layer of this run has it (shim/place_layer.h)
  made,       // an engine has made it for one container
};

struct Rootfs {
  std::string path;  // directory
  Fd dir;
  Lacking lacking = Lacking::refused;
  Fd in_use{};                            // of an image: nobody removes it while this is open
  std::vector<MountPlace> to_lay_over{};  // for this run
};

// Everything on this host that the task names is there and of the right kind; all that is wrong is said at once. Kind usage.
Result<void> check_task_files(const Policy& policy);

Result<Rootfs> open_rootfs(const std::string& path);
// The rootfs of the task, or its image, which is unpacked if it was not yet. Notes in the policy which image it was and what of it is
// not used.
Result<Rootfs> open_task_rootfs(Policy& policy);
// Notes the same for a policy that is only looked at, as far as it can be known without unpacking anything.
Result<void> look_at_image(Policy& policy);
// Of an engine's container: a directory where only that engine and root come.
Result<Rootfs> open_container_rootfs(const std::string& path);

// An input, opened once: what is mounted is what was opened, whatever becomes of its name.
struct Input {
  std::string source, target;
  Fd opened;                                 // O_PATH
  std::optional<std::uint64_t> file_size{};  // of a file alone, which is copied
};
inline constexpr std::uint64_t kLargestCopies = 256 << 20;  // of all files of a run together
// Refuses sockets, FIFOs and devices in an input: reading-only does not stop a candidate from talking through them. Refuses
// files that the kernel makes up, and more to copy than kLargestCopies.
Result<std::vector<Input>> open_inputs(const Policy& policy);

// Where a mount at `target` would appear: images have /sbin and /var/run as symbolic links. Only what stands in the way of the
// last component is followed, inside the rootfs; a target that this would lead to one of `kept` stays as it is.
Result<std::string> real_target(const Rootfs& rootfs, const std::string& target, const std::vector<std::string>& kept);

// Makes the sources of the inputs absolute and real, and requires a place in the rootfs for every mount and for the working
// directory. A delegate would make what is missing, in the operator's own directory and for every later run; here it goes as Lacking
// says.
Result<void> prepare_mount_points(Rootfs& rootfs, Policy& policy);
// For what cannot lay a layer over it. The cure, if there is another one: ", or ...".
Result<void> require_nothing_to_lay_over(const Rootfs& rootfs, const std::string& cure = "");

}  // namespace benchsand
