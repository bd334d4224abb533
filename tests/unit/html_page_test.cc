#include "oci/html_page.h"

#include <doctest/doctest.h>

#include "oci/timeline.h"
#include "sample_record.h"

using namespace benchsand;

TEST_CASE("text of a page: nothing becomes markup, nothing is hidden, nothing is no text") {
  const std::pair<std::string, std::string> rows[] = {
      {"plain caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "plain caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"</script><b a=\"1\" b='2'>&amp;", "&lt;/script&gt;&lt;b a=&quot;1&quot; b=&#39;2&#39;&gt;&amp;amp;"},
      {std::string("a\0\n\r\t\x1b[31m\x7f", 11), "a\\x00\\x0a\\x0d\\x09\\x1b[31m\\x7f"},
      {"\xc2\x85\xc2\xad", "\\xc2\\x85\\xc2\\xad"},  // next line; soft hyphen
      {"\xe2\x80\xae\xe2\x81\xa6\xd8\x9c",
       "\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xd8\\x9c"},                    // overrides and marks of direction
      {"\xe2\x80\x8b\xef\xbb\xbf", "\\xe2\\x80\\x8b\\xef\\xbb\\xbf"},  // zero widths
      {"\xe2\x80\xa8", "\\xe2\\x80\\xa8"},                             // line separator
      {"\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81"},                    // tag, which shows nothing
      {"\xef\xbf\xbe\xef\xbf\xbf", "\\xef\\xbf\\xbe\\xef\\xbf\\xbf"},  // not allowed in XML
      {"\xff\xc0\xaf\xed\xa0\x80\xe2\x82", "\\xff\\xc0\\xaf\\xed\\xa0\\x80\\xe2\\x82"},
      {"", ""}};
  for (const auto& [bytes, text] : rows) CHECK(html_text(bytes) == text);
}

TEST_CASE("a page has a line of evidence for every observation") {
  const auto record = sample::record(Timeline(100'000).json());
  const std::string page = html_page(record);
  for (const char* section : {"established", "spent", "after"})
    for (const auto& [wall, observations] : record["evidence"][section].items())
      for (const auto& [name, entry] : observations.items()) {
        CAPTURE(wall);
        CAPTURE(name);
        CHECK(page.find("<td>" + name + "</td>") != std::string::npos);
        CHECK(page.find("<td class=\"value\">" + html_text(entry["source"])) != std::string::npos);
      }
  CHECK(page.find("no timeline: the run ended before its first sample") != std::string::npos);
}
