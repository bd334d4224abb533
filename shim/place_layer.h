// What the mounts of a run need and its rootfs lacks, in a layer of the run's own: the rootfs is one for all runs of it, and what one
// task had made there the next would find.
#pragma once

#include "shim/rootfs.h"

namespace benchsand {

// Fills `layer`, an empty directory, with rootfs.to_lay_over. A directory of the rootfs on the way looks as it does there.
Result<void> fill_place_layer(const Rootfs& rootfs, const Fd& layer);

}  // namespace benchsand
