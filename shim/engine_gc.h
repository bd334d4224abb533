// `benchsand gc` in the stores of container engines: what a benchsand that has ended left there.
#pragma once

#include <string>
#include <vector>

namespace benchsand {

// Containers and volumes with the labels of a run of this host whose owner is dead; what has an owner that lives, or labels that
// are not ours or not whole, is left. A line for each thing that was removed, and for each engine that did not answer. Only
// engines of this host are asked: an owner elsewhere cannot be looked for.
std::vector<std::string> collect_engine_garbage();

}  // namespace benchsand
