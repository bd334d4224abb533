// Files that the kernel makes up as they are read (/proc, /sys and the like) are no content of a task.
#pragma once

#include <string>

#include "shim/sys.h"

namespace benchsand {

// Kind usage, with `tried` before it, when what is opened (O_PATH is enough) lies on such a file system. Its files say that
// they are empty, so that a copy by size is empty, and tell of whoever reads them: root's own environment among them.
Result<void> require_stored_files(const Fd& opened, const std::string& tried);

}  // namespace benchsand
