// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/parse/time_stamp.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace belay::logs {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads exactly n digits at `at`; -1 if they are not there.
int Digits(std::string_view text, size_t at, size_t n) {
  if (at + n > text.size()) return -1;
  int value = 0;
  for (size_t i = at; i < at + n; ++i) {
    if (!IsDigit(text[i])) return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

// Days since 1970-01-01 of a date in the Gregorian calendar.
int64_t DaysOf(int year, int month, int day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = y / 400;
  const int64_t year_of_era = y - era * 400;
  const int64_t shifted = (month + 9) % 12;
  const int64_t day_of_year = (153 * shifted + 2) / 5 + day - 1;
  const int64_t day_of_era =
      year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

struct Date {
  int year, month, day;
};

Date DateOf(int64_t days) {
  const int64_t z = days + 719468;
  const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const int64_t day_of_era = z - era * 146097;
  const int64_t year_of_era = (day_of_era - day_of_era / 1460 +
                               day_of_era / 36524 - day_of_era / 146096) /
                              365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t shifted = (5 * day_of_year + 2) / 153;
  const int day = static_cast<int>(day_of_year - (153 * shifted + 2) / 5 + 1);
  const int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  const int year =
      static_cast<int>(year_of_era + era * 400 + (month <= 2 ? 1 : 0));
  return {year, month, day};
}

constexpr int64_t kSecond = 1000000;
constexpr int64_t kDay = 86400 * kSecond;

int64_t FloorDays(int64_t us) {
  return us >= 0 ? us / kDay : (us - kDay + 1) / kDay;
}

bool IsDate(int year, int month, int day) {
  return year >= 1970 && year < 2200 && month >= 1 && month <= 12 && day >= 1 &&
         day <= 31;
}

// Microseconds from ".827.387", ".153018", ",123" or nothing; `at` moves on.
int64_t Fraction(std::string_view text, size_t& at) {
  int64_t us = 0;
  int64_t unit = kSecond;
  const auto group = [&](size_t most) {
    size_t n = 0;
    while (n < most && at + 1 + n < text.size() && IsDigit(text[at + 1 + n])) {
      if (unit >= 10) {
        unit /= 10;
        us += (text[at + 1 + n] - '0') * unit;
      }
      ++n;
    }
    if (n > 0) at += 1 + n;
    return n;
  };
  if (at >= text.size() || (text[at] != '.' && text[at] != ',')) return 0;
  if (group(9) == 3 && at < text.size() && text[at] == '.' &&
      Digits(text, at + 1, 3) >= 0) {
    group(3);
  }
  return us;
}

// hh:mm:ss with a fraction and perhaps a zone at `at`, which moves on; -1 if
// there is no time.
int64_t TimeOfDay(std::string_view text, size_t& at) {
  const int h = Digits(text, at, 2);
  const int m = Digits(text, at + 3, 2);
  const int s = Digits(text, at + 6, 2);
  if (h < 0 || h > 23 || m < 0 || m > 59 || s < 0 || s > 60) return -1;
  if (text[at + 2] != ':' || text[at + 5] != ':') return -1;
  at += 8;
  const int64_t us = (static_cast<int64_t>(h) * 3600 + m * 60 + s) * kSecond +
                     Fraction(text, at);
  if (at < text.size() && text[at] == 'Z') {
    ++at;
  } else if (at + 6 <= text.size() && (text[at] == '+' || text[at] == '-') &&
             Digits(text, at + 1, 2) >= 0 && text[at + 3] == ':' &&
             Digits(text, at + 4, 2) >= 0) {
    at += 6;
  }
  return us;
}

// The separator between date and time: one of "-", " ", "T", or two blanks.
bool SkipJoint(std::string_view text, size_t& at) {
  if (at >= text.size()) return false;
  if (text[at] != '-' && text[at] != ' ' && text[at] != 'T') return false;
  ++at;
  if (at < text.size() && text[at] == ' ') ++at;
  return true;
}

std::optional<ParsedTime> Finish(std::string_view text, const Date& date,
                                 size_t at, bool has_year) {
  if (!IsDate(date.year, date.month, date.day) || !SkipJoint(text, at)) {
    return std::nullopt;
  }
  const int64_t us = TimeOfDay(text, at);
  if (us < 0) return std::nullopt;
  return ParsedTime{
      {DaysOf(date.year, date.month, date.day) * kDay + us, has_year}, at};
}

int MonthOf(std::string_view name) {
  static constexpr std::string_view kNames[] = {"Jan", "Feb", "Mar", "Apr",
                                                "May", "Jun", "Jul", "Aug",
                                                "Sep", "Oct", "Nov", "Dec"};
  const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
  return found == std::end(kNames)
             ? 0
             : static_cast<int>(found - std::begin(kNames)) + 1;
}

// "Aug  1 08:38:31", "Aug 12 08:38:31".
std::optional<ParsedTime> Syslog(std::string_view text) {
  if (text.size() < 15 || text[3] != ' ') return std::nullopt;
  const int month = MonthOf(text.substr(0, 3));
  const int day = text[4] == ' ' ? Digits(text, 5, 1) : Digits(text, 4, 2);
  if (month == 0) return std::nullopt;
  return Finish(text, {1970, month, day}, 6, false);
}

}  // namespace

std::optional<ParsedTime> ParseTime(std::string_view text) {
  if (text.size() < 13) return std::nullopt;
  if (!IsDigit(text[0])) return Syslog(text);
  const int year = Digits(text, 0, 4);
  if (year >= 0) {
    const char mark = text[4];
    if ((mark == '-' || mark == '/') && text[7] == mark) {
      return Finish(text, {year, Digits(text, 5, 2), Digits(text, 8, 2)}, 10,
                    true);
    }
    if (Digits(text, 4, 4) >= 0) {
      return Finish(text, {year, Digits(text, 4, 2), Digits(text, 6, 2)}, 8,
                    true);
    }
    if (mark == ' ') {  // MMDD
      return Finish(text, {1970, year / 100, year % 100}, 4, false);
    }
    return std::nullopt;
  }
  if (text[2] == '-' || text[2] == '/') {
    return Finish(text, {1970, Digits(text, 0, 2), Digits(text, 3, 2)}, 5,
                  false);
  }
  return std::nullopt;
}

int64_t WithYear(int64_t us, int year) {
  if (year < 2000 || year >= 2200) return us;
  const int64_t days = FloorDays(us);
  const Date date = DateOf(days);
  return DaysOf(year, date.month, date.day) * kDay + (us - days * kDay);
}

int YearOf(int64_t us) { return DateOf(FloorDays(us)).year; }

std::string FormatTime(const TimeStamp& time) {
  const int64_t days = FloorDays(time.us);
  const Date date = DateOf(days);
  const int64_t rest = time.us - days * kDay;
  const int64_t s = rest / kSecond;
  std::string text = fmt::format("{:02}-{:02}T{:02}:{:02}:{:02}", date.month,
                                 date.day, s / 3600, s / 60 % 60, s % 60);
  if (time.has_year) text = fmt::format("{:04}-{}", date.year, text);
  if (rest % kSecond != 0) text += fmt::format(".{:06}", rest % kSecond);
  return text;
}

}  // namespace belay::logs
