// Broken text for every parser of a kernel file, generated from one good text each: no parser may answer.
#include <doctest/doctest.h>

#include <functional>
#include <optional>

#include "oci/kernel_files.h"
#include "oci/mountinfo.h"
#include "tests/unit/fixtures.h"

namespace benchsand {
namespace {

// "" when the text was accepted.
template <class T>
std::string message(const Result<T>& result) {
  return result ? std::string() : result.error().message;
}

struct Replacement {
  std::string from, to, why;
};

struct Parser {
  std::string name;
  std::string good;  // '@' marks a number
  std::function<std::string(const std::string&)> run;
  std::string kind = "a decimal";        // of the marked number
  std::vector<Replacement> broken = {};  // other ways to break the good text
  bool may_be_empty = false;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, "'" << from << "' is not in the good text");
  return text.replace(at, from.size(), to);
}

std::string status_text() {
  return "Name:\tsh\nPPid:\t@\nUid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nGroups:\t5 6 "
         "\nNSpid:\t7\t1\nCapInh:\t0000000000000000\n"
         "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t00000000a80425fb\nCapAmb:\t0000000000000000\n"
         "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n";
}

std::vector<Replacement> status_breaks() {
  std::vector<Replacement> breaks = {
      {"Uid:\t1\t1", "Uid:\t1", "'Uid' does not have four numbers: '1\\x091\\x091'"},
      {"Gid:\t1\t1", "Gid:\t1\t\t1", "'Gid' does not have four numbers: '1\\x09\\x091\\x091\\x091'"},
      {"5 6 \n", "5 6\n", "'Groups' is cut off: '5 6'"},
      {"5 6 \n", "5  6 \n", "'' is not a decimal number: '5  6 '"},
      {"CapEff:\t00", "CapEff:\t0", "'CapEff' is not a mask of 16 digits: '000000000000000'"},
      {"a80425fb", "a80425fg", "'00000000a80425fg' is not a hexadecimal number: 'CapBnd:\\x0900000000a80425fg'"},
      {"Seccomp:\t2\n", "Seccomp:\t2\nSeccomp:\t0\n", "the key stands twice: 'Seccomp:\\x090'"},
      {"Seccomp:\t2", "Seccomp:  2", "'KEY:<tab>VALUE' is due: 'Seccomp:  2'"},
      {"NSpid:\t7\t1", "NSpid:\t7\t", "'' is not a decimal number: '7\\x09'"},
      {"NoNewPrivs:\t1", "NoNewPrivs:\t", "'' is not a decimal number: 'NoNewPrivs:\\x09'"},
  };
  for (const std::string key : {"Name", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
                                "NoNewPrivs", "Seccomp", "Seccomp_filters", "PPid", "NSpid"})
    breaks.push_back({"\n" + key + ":", "\nX" + key + ":", "'" + key + "' is missing"});
  breaks[10].from = "Name:";  // the first line
  breaks[10].to = "XName:";
  return breaks;
}

std::string stat_text() {
  std::string text = "7 (a b) S";
  for (int field = 4; field <= 52; ++field) text += field == 22 ? " @" : " 0";
  return text + "\n";
}

const std::string kDevHeader = "Inter-|   Receive  |  Transmit\n face |bytes    packets|bytes    packets\n";
const std::string kRouteHeader = "Iface\tDestination\tGateway \tFlags\n";
const std::string kLimitsHeader = "Limit                     Soft Limit           Hard Limit           Units     \n";

std::vector<Parser> cgroup_parsers() {
  return {
      {.name = "counter",
       .good = "@\n",
       .run = [](const std::string& text) { return message(parse_counter(text, "FILE")); },
       .broken = {{"@\n", "1\n2\n", "one line is due, there are 2"},
                  {"@", "max", "'max' is not a decimal number: 'max'"},
                  {"@", " 1", "' 1' is not a decimal number: ' 1'"},
                  {"@", "0x1", "'0x1' is not a decimal number: '0x1'"}}},
      {.name = "numbers",
       .good = "7\n@\n",
       .run = [](const std::string& text) { return message(parse_numbers(text, "FILE")); },
       .broken = {{"7\n", "7 8\n", "'7 8' is not a decimal number: '7 8'"},
                  {"7\n", "\n", "'' is not a decimal number: ''"},
                  {"7\n", "-7\n", "'-7' is not a decimal number: '-7'"}},
       .may_be_empty = true},
      {.name = "limit",
       .good = "@\n",
       .run = [](const std::string& text) { return message(parse_limit(text, "FILE")); },
       .broken = {{"@", "max ", "'max ' is not a decimal number: 'max '"},
                  {"@\n", "max\nmax\n", "one line is due, there are 2"}}},
      {.name = "cfs quota",
       .good = "@\n",
       .run = [](const std::string& text) { return message(parse_cfs_quota(text, "FILE")); },
       .broken = {{"@", "max", "'max' is not a decimal number: 'max'"}}},
      {.name = "cpu.max",
       .good = "@ 100000\n",
       .run = [](const std::string& text) { return message(parse_cpu_max(text, "FILE")); },
       .broken = {{" 100000", "", "'QUOTA PERIOD' is due: '@'"},
                  {" 100000", "  100000", "'QUOTA PERIOD' is due: '@  100000'"},
                  {"@ 100000", "max max", "'max' is not a decimal number: 'max max'"},
                  {"@ 100000", "max 0", "the period is 0: 'max 0'"}}},
      {.name = "keyed",
       .good = "oom 0\noom_kill @\n",
       .run =
           [](const std::string& text) {
             return message(parse_keyed(text, "FILE", {"oom", "oom_kill"}));
           },
       .broken = {{"oom 0\n", "", "'oom' is missing"},
                  {"oom 0\n", "oom 0\noom 0\n", "the key stands twice: 'oom 0'"},
                  {"oom 0", "oom  0", "'KEY NUMBER' is due: 'oom  0'"},
                  {"oom 0", " 0", "'KEY NUMBER' is due: ' 0'"},
                  {"oom 0", "oom\t0", "'KEY NUMBER' is due: 'oom\\x090'"},
                  {"oom 0", "oom max", "'max' is not a decimal number: 'oom max'"}}},
      {.name = "membership",
       .good = "@:memory:/a\n0::/a\n",
       .run = [](const std::string& text) { return message(parse_cgroup_membership(text, "FILE")); },
       .broken = {{"memory:/a", "memory", "'HIERARCHY:CONTROLLERS:/PATH' is due: '@:memory'"},
                  {"0::/a", "0::a", "'HIERARCHY:CONTROLLERS:/PATH' is due: '0::a'"},
                  {"@:", "0:", "only hierarchy 0 has no controllers: '0:memory:/a'"},
                  {"memory", "", "only hierarchy 0 has no controllers: '@::/a'"},
                  {"@:", "4294967296:", "the hierarchy is not below 2^32: '4294967296:memory:/a'"},
                  {"0::/a\n", "0::/a\n0::/b\n", "the hierarchy stands twice: '0::/b'"}}},
  };
}

std::vector<Parser> host_parsers() {
  const std::string averages = " avg10=0.00 avg60=1.50 avg300=0.00 ";
  return {
      {.name = "pressure",
       .good = "some" + averages + "total=@\nfull" + averages + "total=5\n",
       .run = [](const std::string& text) { return message(parse_pressure(text, "FILE")); },
       .broken = {{"some", "none", "'some' or 'full' is due: '*'"},
                  {"full", "some", "the kind stands twice: '*'"},
                  {"some" + averages + "total=@\n", "", "'some' is missing"},
                  {"total=@", "@", "'KIND avg10= avg60= avg300= total=' is due: '*'"},
                  {" avg60=1.50", "", "'KIND avg10= avg60= avg300= total=' is due: '*'"},
                  {"total=@", "total=1.5", "'1.5' is not a decimal number: '*'"}}},
      {.name = "io.stat",
       .good = "8:0 rbytes=1 wbytes=@ rios=1 wios=1\n",
       .run = [](const std::string& text) { return message(parse_io_stat_writes(text, "FILE")); },
       .broken = {{"8:0", "sda", "'MAJOR:MINOR KEY=NUMBER' is due: '*'"},
                  {"8:0", "8:", "'MAJOR:MINOR KEY=NUMBER' is due: '*'"},
                  {"wbytes", "bytes", "'wbytes=' is missing: '*'"},
                  {"wbytes=@", "wbytes=", "'' is not a decimal number: '*'"}},
       .may_be_empty = true},
      {.name = "blkio",
       .good = "8:0 Read 1\n8:0 Write @\nTotal 3\n",
       .run = [](const std::string& text) { return message(parse_blkio_writes(text, "FILE")); },
       .broken = {{"Total 3\n", "", "'Total' is missing"},
                  {"Total 3", "Total", "'MAJOR:MINOR OPERATION NUMBER' is due: 'Total'"},
                  {"8:0 Read 1\n", "Total 1\n", "nothing is due after 'Total': '*'"},
                  {"8:0 Read", "8:0", "'MAJOR:MINOR OPERATION NUMBER' is due: '8:0 1'"},
                  {"8:0 Read", "sda Read", "'MAJOR:MINOR OPERATION NUMBER' is due: 'sda Read 1'"}}},
  };
}

std::vector<Parser> process_parsers() {
  return {
      {.name = "status",
       .good = status_text(),
       .run = [](const std::string& text) { return message(parse_process_status(text, "FILE")); },
       .broken = status_breaks()},
      {.name = "stat",
       .good = stat_text(),
       .run = [](const std::string& text) { return message(parse_process_stat(text, "FILE")); },
       .broken = {{") S 0 0 0", ") S 0 0", "52 fields are due, there are 51: '*'"},
                  {") S", ") S 0", "52 fields are due, there are 53: '*'"},
                  {") S", ")S", "'PID (NAME) STATE ...' is due: '*'"},
                  {" (", "(", "'PID (NAME) STATE ...' is due: '*'"},
                  {"7 (", "x (", "'x' is not a decimal number: '*'"},
                  {") S", ") SS", "the state is not one letter: '*'"},
                  {") S 0 ", ") S  ", "'' is not a decimal number: '*'"}}},
      {.name = "limits",
       .good = kLimitsHeader + "Max open files            @                    unlimited            files     \n",
       .run = [](const std::string& text) { return message(parse_process_limits(text, "FILE")); },
       .broken = {{"Soft", "soft", "the header is unknown: '*'"},
                  {"files     \n", "\nMax\n", "the line is too short: 'Max'"},
                  {"Max open files", "              ", "the limit has no name: '*'"},
                  {"unlimited", "unlimite ", "'unlimite' is not a decimal number: '*'"},
                  {"files     \n",
                   "files     \nMax open files            1                    1                    files     \n",
                   "the limit stands twice: '*'"}}},
      {.name = "fd flags",
       .good = "pos:\t0\nflags:\t@\nmnt_id:\t9\n",
       .run = [](const std::string& text) { return message(parse_fd_flags(text, "FILE")); },
       .kind = "an octal",
       .broken = {{"flags:\t@\n", "", "'flags' is missing"},
                  {"flags:\t@\n", "flags:\t0\nflags:\t0\n", "the key stands twice: 'flags:\\x090'"},
                  {"flags:\t", "flags: ", "'flags:<tab>OCTAL' is due: 'flags: @'"},
                  {"@", "8", "'8' is not an octal number: 'flags:\\x098'"}}},
  };
}

std::vector<Parser> net_parsers() {
  const std::string six = "Ip6InReceives                   \t0\nIp6OutNoRoutes                  \t@\n";
  const std::string hex(32, '0');
  const std::string route6 = hex + " 00 " + hex + " 00 " + hex + " ffffffff 00000001 00000000 00200200       lo\n";
  return {
      {.name = "net/dev",
       .good = kDevHeader + "    lo: 0 0 0 0 0 0 0 0 @ 0 0 0 0 0 0 0\n",
       .run = [](const std::string& text) { return message(parse_net_dev(text, "FILE")); },
       .broken = {{"Inter-|", "", "the two header lines are unknown: '*'"},
                  {" face |", "", "the two header lines are unknown: '*'"},
                  {"lo: 0 ", "lo: ", "16 numbers are due, there are 15: '*'"},
                  {"lo: 0", "lo: 0 0", "16 numbers are due, there are 17: '*'"},
                  {"lo:", "lo", "'NAME: NUMBERS' is due: '*'"},
                  {"lo:", ":", "the link has no name: '*'"},
                  {"    lo:", "    lo:0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n    lo:", "the link stands twice: '*'"}}},
      {.name = "net/route",
       .good = kRouteHeader + "eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n",
       .run = [](const std::string& text) { return message(parse_ipv4_routes(text, "FILE")); },
       .broken = {{"Destination", "To", "the header is unknown: '*'"},
                  {"\t0003", "", "11 columns are due, there are 10: '*'"},
                  {"\t0003", "\t0003\t1", "11 columns are due, there are 12: '*'"},
                  {"\t00000000", "\tdefault", "8 hexadecimal digits are due for the destination: '*'"}}},
      {.name = "net/ipv6_route",
       .good = route6,
       .run = [](const std::string& text) { return message(parse_ipv6_routes(text, "FILE")); },
       .broken = {{"00200200", "", "10 columns are due, there are 9: '*'"},
                  {"lo", "l o", "10 columns are due, there are 11: '*'"},
                  {"00", "0", "32 hexadecimal digits are due for the destination: '*'"}},
       .may_be_empty = true},
      {.name = "net/snmp",
       .good = "Ip: Forwarding OutNoRoutes\nIp: 1 @\nTcp: MaxConn\nTcp: -1\n",
       .run = [](const std::string& text) { return message(parse_snmp(text, "FILE", "Ip", "OutNoRoutes")); },
       .broken = {{" OutNoRoutes", " Other", "'OutNoRoutes' of Ip is missing"},
                  {" OutNoRoutes", "", "there are 1 names for the numbers of: 'Ip: 1 @'"},
                  {"Ip: 1 @", "Ip: 1  @", "there are 2 names for the numbers of: 'Ip: 1  @'"},
                  {"Forwarding", "OutNoRoutes", "'OutNoRoutes' of Ip stands twice"},
                  {"Ip: 1 @\n", "", "two lines 'Ip:' are due, there are 1"},
                  {"Tcp: MaxConn", "Ip: MaxConn", "two lines 'Ip:' are due, there are 3"}}},
      {.name = "net/snmp6",
       .good = six,
       .run = [](const std::string& text) { return message(parse_snmp6(text, "FILE", "Ip6OutNoRoutes")); },
       .broken = {{"Ip6OutNoRoutes ", "Ip6Other ", "'Ip6OutNoRoutes' is missing"},
                  {"Ip6InReceives ", "Ip6OutNoRoutes ", "the key stands twice: '*'"},
                  {"\t0", "", "'NAME NUMBER' is due: '*'"},
                  {"\t0", "\tx", "'x' is not a decimal number: '*'"}}},
  };
}

Parser mountinfo_parser() {
  return {.name = "mountinfo",
          .good = "@ 1 0:5 / / ro,nosuid shared:1 master:2 - tmpfs none rw\n70 1 0:6 / /proc ro - proc proc rw\n",
          .run = [](const std::string& text) { return message(parse_mountinfo(text, "FILE")); },
          .broken = {{" - proc", " proc", "six fields, '-' and three more are due: '*'"},
                     {"proc proc rw", "proc rw", "six fields, '-' and three more are due: '*'"},
                     {"proc proc rw", "proc proc rw x", "six fields, '-' and three more are due: '*'"},
                     {"/proc ro", "/proc  ro", "six fields, '-' and three more are due: '*'"},
                     {"/proc ro", "ro", "six fields, '-' and three more are due: '*'"},
                     {"0:6", "6", "'MAJOR:MINOR' is due as third field: '*'"},
                     {"0:6", "0:", "'' is not a decimal number: '*'"},
                     {"/proc ro", "proc ro", "the mount point is not absolute: '*'"},
                     {"/proc ro", "/proc nosuid", "either ro or rw is due: '*'"},
                     {"/proc ro", "/proc ro,rw", "either ro or rw is due: '*'"},
                     {"proc proc rw", "proc proc x", "either ro or rw is due: '*'"},
                     {"/proc ro", "/pr\\041oc ro", "unknown escape: '*'"},
                     {"/proc ro", "/proc\\04 ro", "unknown escape: '*'"},
                     {"70 1", "71 1 0:5 / /x ro - tmpfs none rw\n71 1", "the mount id stands twice: '*'"},
                     {"70 1", "70 -1", "'-1' is not a decimal number: '*'"}}};
}

std::vector<Parser> all_parsers() {
  std::vector<Parser> all = cgroup_parsers();
  for (const auto& more : {host_parsers(), process_parsers(), net_parsers(), std::vector<Parser>{mountinfo_parser()}})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// '*' at the end of the expected text stands for the quoted line.
void check_refused(const Parser& parser, const std::string& text, const std::string& why) {
  CAPTURE(text);
  std::string seen = parser.run(text);
  const std::string expected = "parse FILE: " + why;
  if (why.ends_with("'*'") && seen.rfind(": '") != std::string::npos) {
    seen = seen.substr(0, std::min(seen.size(), expected.size() - 2)) + "*'";
  }
  CHECK(seen == expected);
}

bool has_number(const Parser& parser) {
  return parser.good.find('@') != std::string::npos;
}

std::string good_text(const Parser& parser) {
  return has_number(parser) ? replaced(parser.good, "@", "5") : parser.good;
}

TEST_CASE("the good texts are accepted") {
  for (const Parser& parser : all_parsers()) CHECK_MESSAGE(parser.run(good_text(parser)).empty(), parser.name);
}

TEST_CASE("a file that is empty, cut off or holds NUL") {
  for (const Parser& parser : all_parsers()) {
    CAPTURE(parser.name);
    const std::string good = good_text(parser);
    if (parser.may_be_empty)
      CHECK(parser.run("").empty());
    else
      check_refused(parser, "", "the file is empty");
    check_refused(parser, good.substr(0, good.size() - 1), "the last line is cut off");
    check_refused(parser, good.substr(0, good.size() / 2) + '\0' + good.substr(good.size() / 2), "it holds a NUL byte");
    check_refused(parser, good + '\0', "it holds a NUL byte");
  }
}

TEST_CASE("a file that stops within a line") {
  for (const Parser& parser : all_parsers()) {
    CAPTURE(parser.name);
    const std::string good = good_text(parser);
    for (std::size_t length = 1; length < good.size(); ++length)
      if (good[length - 1] != '\n') check_refused(parser, good.substr(0, length), "the last line is cut off");
  }
}

TEST_CASE("a number that is negative, too large, not a number or signed") {
  for (const Parser& parser : all_parsers()) {
    CAPTURE(parser.name);
    if (!has_number(parser)) continue;
    for (const std::string bad : {"-2", "+1", "1x", "zz", "1.5"})
      check_refused(parser, replaced(parser.good, "@", bad), "'" + bad + "' is not " + parser.kind + " number: '*'");
    const std::string large = parser.kind == "an octal" ? "2000000000000000000000" : "18446744073709551616";
    check_refused(parser, replaced(parser.good, "@", large), "a number is not below 2^64: '*'");
  }
}

TEST_CASE("keys missing or doubled, blanks doubled, columns missing") {
  for (const Parser& parser : all_parsers()) {
    CAPTURE(parser.name);
    for (const Replacement& one : parser.broken) {
      std::string why = one.why;
      if (why.find('@') != std::string::npos) why.replace(why.find('@'), 1, "5");
      std::string text = replaced(parser.good, one.from, one.to);
      if (text.find('@') != std::string::npos) text = replaced(text, "@", "5");
      check_refused(parser, text, why);
    }
  }
}

TEST_CASE("a namespace link of another type or form") {
  const auto run = [](const std::string& link) { return message(parse_namespace_link(link, "net", "LINK")); };
  CHECK(run("net:[4026531833]").empty());
  for (const std::string link :
       {"", "net", "net:[", "pid:[4026531836]", "net:[1", "net:1]", "/proc/1/ns/net", "net:[1]\n"})
    CHECK(run(link).starts_with("parse LINK: 'net:[NUMBER]' is due: '"));
  CHECK(run("net:[]") == "parse LINK: '' is not a decimal number: 'net:[]'");
  CHECK(run("net:[-1]") == "parse LINK: '-1' is not a decimal number: 'net:[-1]'");
  CHECK(run("net:[18446744073709551616]") == "parse LINK: a number is not below 2^64: 'net:[18446744073709551616]'");
}

TEST_CASE("a quoted line is short and printable") {
  const std::string seen = message(parse_counter(std::string(500, 'a') + "\n", "FILE"));
  CHECK(seen.size() < 400);
  CHECK(seen.ends_with("aaa...'"));
  CHECK(message(parse_counter("\x1b[2J\n", "FILE")) == "parse FILE: '\\x1b[2J' is not a decimal number: '\\x1b[2J'");
}

}  // namespace
}  // namespace benchsand
