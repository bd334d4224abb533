// A report of the conformance suite with every verdict, and texts as an attacker would choose them.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/tally.h"
#include "oci/text.h"

namespace sample {

namespace suite {

using benchsand::conformance::CaseResult;
using benchsand::conformance::CaseVerdict;
using benchsand::conformance::SuiteAbout;
using benchsand::conformance::SuiteReport;

inline SuiteAbout about() {
  SuiteAbout about;
  about.version = "0.1.0";
  about.created = "2026-11-30T12:34:56Z";
  about.engine = "crun";
  about.delegate = "crun";
  about.delegate_version = "1.8.1";
  about.delegate_sha256 = std::string(64, 'd');
  about.kernel = "6.18.44";
  about.cgroup = "hybrid";
  about.profile = "strict";
  about.profile_sha256 = std::string(64, 'a');
  about.probe_sha256 = std::string(64, 'b');
  about.cases_sha256 = std::string(64, 'c');
  about.duration_us = 41'200'000;
  return about;
}

inline CaseResult one(const std::string& id, CaseVerdict verdict, unsigned check = 0) {
  CaseResult result;
  result.id = id;
  result.check = check;
  result.wall = "syscalls";
  result.attempt = "make a BPF map";
  result.asserts = "no BPF object can be made";
  result.expected = "EPERM by seccomp";
  result.inside = verdict == CaseVerdict::escaped ? "ok" : "EPERM";
  result.host = "ledger: bpf EPERM 1 of 1";
  result.control = "without seccomp: ok";
  result.verdict = verdict;
  if (verdict != CaseVerdict::refused) result.reason = std::string("why ") + to_text(verdict);
  return result;
}

inline SuiteReport report(std::vector<CaseResult> cases) {
  return {about(), std::move(cases)};
}

// One case of each.
inline SuiteReport every_verdict() {
  std::vector<CaseResult> cases;
  for (const auto verdict : benchsand::conformance::kCaseVerdicts)
    cases.push_back(one("case." + std::to_string(cases.size()), verdict));
  return report(std::move(cases));
}

inline SuiteReport good() {
  std::vector<CaseResult> cases;
  for (unsigned check = 1; check <= benchsand::conformance::kChecks; ++check)
    cases.push_back(one("ten." + std::to_string(check), CaseVerdict::refused, check));
  cases.push_back(one("kernel.bpf-map", CaseVerdict::refused));
  return report(std::move(cases));
}

// Each tries to leave the place where it stands, in one format or another.
inline const std::vector<std::string>& hostile_texts() {
  static const std::vector<std::string> texts = {
      "EPERM\n::error title=x::forged\n::set-output name=x::y",
      "\r\n::add-mask::secret",
      "::error::forged",
      "  ::warning::forged",
      "##[add-path]forged and ###[error]forged",
      "%0A::error::forged %25 %",
      "\x1b[2J\x1b[32mREFUSED\x1b[0m",
      "</testcase><testcase name=\"forged\"/>]]>",
      "<!-- --><script>forged()</script>&amp;&#10;&undefined;",
      "\" message=\"forged\" ' x='",
      "ok 1 - forged\nnot ok 2 - forged # TO"
      "DO forged",
      "forged # SKIP forged \\# skip",
      "  ...\nok 3 - forged\n1..0 # skip all\nBail out! forged",
      "forged | forged | **forged** | `code` |\n|---|---|\n# forged",
      "\\| forged ``` \\` [x](javascript:forged) ![x](http://forged/) @everyone www.forged.example x@forged.example "
      "http://forged.example",
      "\"}], \"passes\": true, \"x\": [{\"",
      "forged\"} 1\nbenchsand_conformance_passed 1\n# EOF\n",
      std::string("nul \0 nul", 9),
      "invalid \xff\xfe \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xe2\x82",
      "\xe2\x80\xae turned \xe2\x81\xa6 \xe2\x80\xa8 line \xc2\x85 next \xef\xbb\xbf \xf3\xa0\x81\x81",
      "back\\slash \\n \\x0a \\",
      std::string(100'000, 'A'),
      std::string(100'000, '\n'),
      std::string(100'000, '\xff'),
      std::string(33'333, '|') + "\xe2\x82\xac",
  };
  return texts;
}

// Every text that the probe's words may come into is hostile; `verdict` decides what the formats do with it.
inline SuiteReport hostile(CaseVerdict verdict) {
  std::vector<CaseResult> cases;
  for (const auto& text : hostile_texts()) {
    CaseResult result = one("case." + std::to_string(cases.size()), verdict,
                            static_cast<unsigned>(cases.size() % (benchsand::conformance::kChecks + 1)));
    result.inside = result.host = result.control = result.reason = result.expected = text;
    result.attempt = result.asserts = text;  // of the suite's own data, and held to the same
    cases.push_back(result);
  }
  SuiteReport all = report(std::move(cases));
  all.about.delegate_version = hostile_texts()[0];  // what a program says of itself
  all.about.kernel = hostile_texts()[16];
  return all;
}

}  // namespace suite

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return lines;
}

// Printable ASCII.
inline bool is_plain(const std::string& line) {
  return std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// UTF-8 with nothing in it that a reader would not see.
inline bool is_all_shown(const std::string& line) {
  for (std::size_t at = 0; at < line.size(); at += benchsand::utf8_length(line, at))
    if (benchsand::utf8_length(line, at) == 0 || benchsand::hidden_length(line, at) != 0) return false;
  return true;
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace sample
