#include "oci/toml_text.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace benchsand;

namespace {

std::vector<TomlEntry> read(const std::string& text) {
  const auto entries = read_toml(text, "FILE");
  INFO(text);
  REQUIRE_MESSAGE(entries, entries.error().message);
  return *entries;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : "|") + word;
  return text;
}

}  // namespace

TEST_CASE("paths, lines and kinds of a TOML text") {
  std::string seen;
  for (const auto& entry :
       read("a = 1\n[b.\"c.d\" . 'e']\n  f.g = {h = \"i\", j = {}} # k\n[[l]]\nm = 2\n[[l]]\nm = 3\n"
            "[l.n]\r\no = 1979-05-27 07:32:00Z\r\n")) {
    const char* kinds[] = {"table", "array", "inline", "value"};
    seen += std::to_string(entry.line) + " " + kinds[static_cast<int>(entry.kind)] + " " + joined(entry.path) + "=" +
            entry.text + joined(entry.strings) + "\n";
  }
  CHECK(seen ==
        "1 value a=1\n2 table b|c.d|e=\n3 inline b|c.d|e|f|g=\n3 value b|c.d|e|f|g|h=i\n3 inline b|c.d|e|f|g|j=\n"
        "4 array l=\n5 value l|m=2\n6 array l=\n7 value l|m=3\n8 table l|n=\n9 value l|n|o=1979-05-27 07:32:00Z\n");
}

TEST_CASE("strings of a TOML text") {
  const auto one = [](const std::string& value) { return joined(read("a = " + value + "\n").front().strings); };
  CHECK(one("\"a\\tb\\\"c\\u00e4\\U0001F600\"") == "a\tb\"c\xC3\xA4\xF0\x9F\x98\x80");
  CHECK(one("'a\\t'") == "a\\t");
  CHECK(one("\"\"\"a\n[b]\\\n   c \"\" \"\"\"\"") == "a\n[b]c \"\" \"");
  CHECK(one("'''a'b\\'''") == "a'b\\");
  CHECK(one("[\"a\", # b\n\n 'c', [\"d\"],\n]") == "a|c|d");
  CHECK(one("\"\"") == "");
}

TEST_CASE("values that are no strings") {
  for (const char* value : {"1", "-0.5e+3", "+1_000", "0xff", "true", "false", "inf", "-nan", "1979-05-27",
                            "1979-05-27T07:32:00+01:00", "07:32:00"})
    CHECK(read(std::string("a = ") + value).front().text == value);
}

TEST_CASE("what is no TOML is refused with its place") {
  struct Case {
    std::string text, place, what;
  };
  const std::string deep(40, '[');
  for (const Case& c : std::vector<Case>{
           {"a", "1, column 2", "expected = after the key"},
           {"a =\n", "1, column 4", "expected a value"},
           {"a = b\n", "1, column 5", "'b' is no value; a string needs quotes"},
           {"a = 1 b = 2\n", "1, column 7", "something after the end of the statement"},
           {"\n= 1\n", "2, column 1", "expected a key"},
           {"[a\nb = 1\n", "1, column 3", "expected ]"},
           {"[[a]\n", "1, column 4", "expected ]]"},
           {"[]\n", "1, column 2", "expected a key"},
           {"a = \"b\n\"\n", "1, column 7", "a string without its closing quote"},
           {"a = \"\"\"b\n", "2, column 1", "a string without its \"\"\""},
           {"a = \"\\x\"\n", "1, column 7", "an unknown escape in a string"},
           {"a = \"\\u12\"\n", "1, column 10", "an escape with too few digits in a string"},
           {"a = \"\\UFFFFFFFF\"\n", "1, column 16", "an escape that is no character"},
           {"a = [1 2]\n", "1, column 8", "expected , or ] in an array"},
           {"a = [1,\n", "2, column 1", "expected a value"},
           {"a = {b = 1 c = 2}\n", "1, column 12", "expected , or } in an inline table"},
           {"a = {b = 1,\n", "1, column 12", "expected a key"},
           {"a = 1\na = 2\n", "2, column 1", "'a' stands here for the second time"},
           {"[a]\n[b]\n[a]\n", "3, column 1", "'a' stands here for the second time"},
           {"a = " + deep, "1, column 37", "nested too deep"},
       }) {
    const auto entries = read_toml(c.text, "FILE");
    INFO(c.text);
    REQUIRE_FALSE(entries);
    CHECK(entries.error().message == "read FILE: not TOML at line " + c.place + ": " + c.what);
  }
}
