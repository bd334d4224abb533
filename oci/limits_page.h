// The limits of a profile for people: the text of `benchsand limits` and of docs/limits.md, from the values that are enforced.
#pragma once

#include <string>
#include <vector>

#include "oci/profile.h"

namespace benchsand {

// A table for a terminal.
std::string limits_table(const Profile& profile);

// The whole page, a section per profile; docs/limits.md is that of the shipped ones, sorted by name.
std::string limits_markdown(const std::vector<Profile>& profiles);

}  // namespace benchsand
