#include "oci/wall_builder.h"

#include "oci/processor_list.h"

namespace benchsand {

namespace {

const Value* value_at(const Evidence& evidence, const std::string& key) {
  const Observation* observation = evidence.find(key);
  return observation ? observation->value() : nullptr;
}

const std::uint64_t* number(const Value* value) {
  return value ? std::get_if<std::uint64_t>(value) : nullptr;
}

bool is_digest(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text && text->size() == 64 && text->find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

WallBuilder& WallBuilder::heading(Section section, bool at_door) {
  section_ = section;
  at_door_ = at_door;
  return *this;
}

WallBuilder& WallBuilder::add(const std::string& name, std::string expected, Holds holds) {
  rules_.push_back({wall_, wall_ + "." + name, section_, at_door_, std::move(expected), false, std::move(holds)});
  return *this;
}

WallBuilder& WallBuilder::equals(const std::string& name, const Value& expected) {
  return add(name, to_text(expected), [expected](const Value& v, const Evidence&) { return v == expected; });
}

WallBuilder& WallBuilder::at_most(const std::string& name, std::uint64_t most) {
  return add(name, "at most " + std::to_string(most),
             [most](const Value& v, const Evidence&) { return number(&v) && *number(&v) <= most; });
}

WallBuilder& WallBuilder::between(const std::string& name, std::uint64_t least, std::uint64_t most) {
  const std::string expected = std::to_string(least) + " to " + std::to_string(most);
  return add(name, expected, [least, most](const Value& v, const Evidence&) {
    return number(&v) && *number(&v) >= least && *number(&v) <= most;
  });
}

WallBuilder& WallBuilder::at_most_where_counted(const std::string& name, std::uint64_t most) {
  return add(name, "at most " + std::to_string(most), [most](const Value& v, const Evidence&) {
    return number(&v) ? *number(&v) <= most : std::get<std::string>(v) == kNotInThisKernel;
  });
}

WallBuilder& WallBuilder::at_most_or(const std::string& name, std::uint64_t most, const std::string& before) {
  const std::string expected = "at most " + std::to_string(most) + ", or " + before;
  return add(name, expected, [most, before](const Value& v, const Evidence& e) {
    if (!number(&v)) return std::get<std::string>(v) == kNotInThisKernel;
    const std::uint64_t* earlier = number(value_at(e, before));
    return *number(&v) <= most || (earlier && *number(&v) <= *earlier);
  });
}

WallBuilder& WallBuilder::counted(const std::string& name) {
  return add(name, "a count", [](const Value& v, const Evidence&) { return number(&v) != nullptr; });
}

WallBuilder& WallBuilder::counted_or(const std::string& name, const std::string& otherwise) {
  return add(name, "a count, or " + otherwise, [otherwise](const Value& v, const Evidence&) {
    return number(&v) || std::get<std::string>(v) == otherwise;
  });
}

WallBuilder& WallBuilder::named(const std::string& name) {
  return add(name, "a name", [](const Value& v, const Evidence&) {
    const auto* text = std::get_if<std::string>(&v);
    return text && !text->empty();
  });
}

WallBuilder& WallBuilder::either(const std::string& name, const std::string& one, const std::string& other) {
  return add(name, one + ", or " + other, [one, other](const Value& v, const Evidence&) {
    const auto* text = std::get_if<std::string>(&v);
    return text && (*text == one || *text == other);
  });
}

WallBuilder& WallBuilder::processors_or(const std::string& name, const std::string& otherwise) {
  return add(name, "a list of processors, or " + otherwise, [otherwise](const Value& v, const Evidence&) {
    const auto* text = std::get_if<std::string>(&v);
    return text && (*text == otherwise || parse_processor_list(*text));
  });
}

WallBuilder& WallBuilder::digest(const std::string& name) {
  return add(name, "a SHA-256", [](const Value& v, const Evidence&) { return is_digest(v); });
}

WallBuilder& WallBuilder::same_as(const std::string& name, const std::string& other) {
  return add(name, "same as " + other, [other](const Value& v, const Evidence& e) {
    const Value* o = value_at(e, other);
    return o && *o == v;
  });
}

WallBuilder& WallBuilder::differs_from(const std::string& name, const std::string& other) {
  return add(name, "other than " + other, [other](const Value& v, const Evidence& e) {
    const std::uint64_t* o = number(value_at(e, other));
    return number(&v) && o && *number(&v) != *o;
  });
}

WallBuilder& WallBuilder::at_least(const std::string& name, const std::string& other) {
  return add(name, "at least " + other, [other](const Value& v, const Evidence& e) {
    const std::uint64_t* o = number(value_at(e, other));
    return number(&v) && o && *number(&v) >= *o;
  });
}

WallBuilder& WallBuilder::difference_of(const std::string& name, const std::string& later, const std::string& earlier) {
  return add(name, later + " - " + earlier, [later, earlier](const Value& v, const Evidence& e) {
    const std::uint64_t* l = number(value_at(e, later));
    const std::uint64_t* s = number(value_at(e, earlier));
    return number(&v) && l && s && *l >= *s && *number(&v) == *l - *s;
  });
}

}  // namespace benchsand
