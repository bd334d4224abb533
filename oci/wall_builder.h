// The words in which walls.cc states its rules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "oci/walls.h"

namespace benchsand {

class WallBuilder {
 public:
  WallBuilder(std::vector<Rule>& rules, std::string wall) : rules_(rules), wall_(std::move(wall)) {}

  // Section headings; the rules that follow belong to them.
  WallBuilder& at_the_door() { return heading(Section::established, true); }
  WallBuilder& at_the_end() { return heading(Section::established, false); }
  WallBuilder& spent() { return heading(Section::spent, false); }
  WallBuilder& after() { return heading(Section::after, false); }

  WallBuilder& equals(const std::string& name, const Value& expected);
  WallBuilder& at_most(const std::string& name, std::uint64_t most);
  WallBuilder& between(const std::string& name, std::uint64_t least, std::uint64_t most);
  // A counter that older kernels do not have: kNotInThisKernel is accepted in its place.
  WallBuilder& at_most_where_counted(const std::string& name, std::uint64_t most);
  // The same, for a high-water mark that may have been higher already at the door.
  WallBuilder& at_most_or(const std::string& name, std::uint64_t most, const std::string& before);
  WallBuilder& counted(const std::string& name);                                   // any number
  WallBuilder& counted_or(const std::string& name, const std::string& otherwise);  // any number, or this text
  WallBuilder& named(const std::string& name);                                     // any text but an empty one
  WallBuilder& either(const std::string& name, const std::string& one, const std::string& other);
  WallBuilder& processors_or(const std::string& name, const std::string& otherwise);  // a list of them, or this text
  WallBuilder& digest(const std::string& name);                                       // 64 hexadecimal digits
  // Compared with another observation, given by its full key.
  WallBuilder& same_as(const std::string& name, const std::string& other);
  WallBuilder& differs_from(const std::string& name, const std::string& other);
  WallBuilder& at_least(const std::string& name, const std::string& other);  // a counter never goes backwards
  WallBuilder& difference_of(const std::string& name, const std::string& later, const std::string& earlier);

 private:
  using Holds = std::function<bool(const Value&, const Evidence&)>;
  WallBuilder& heading(Section section, bool at_door);
  WallBuilder& add(const std::string& name, std::string expected, Holds holds);

  std::vector<Rule>& rules_;
  std::string wall_;
  Section section_ = Section::established;
  bool at_door_ = true;
};

}  // namespace benchsand
