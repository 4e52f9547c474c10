#include "policy/units.h"

#include <array>
#include <span>

#include <fmt/format.h>

namespace belljar::policy {
namespace {

__extension__ using Wide = unsigned __int128;  // room for 2^64 with nine decimals, so that no step can overflow

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::size_t kMaxDigits = 20;  // of the whole part: 2^64 has 20
constexpr std::size_t kMaxDecimals = 9;

struct Suffix {
  std::string_view text;
  std::uint64_t factor;
};

constexpr auto kSizes =
    std::to_array<Suffix>({{"", 1}, {"K", 1ULL << 10}, {"M", 1ULL << 20}, {"G", 1ULL << 30}, {"T", 1ULL << 40}});
constexpr auto kDurations = std::to_array<Suffix>(
    {{"", kSecond}, {"ms", 1'000'000}, {"s", kSecond}, {"m", 60 * kSecond}, {"h", 3600 * kSecond}});
constexpr auto kCpus = std::to_array<Suffix>({{"", 1000}});
constexpr auto kCounts = std::to_array<Suffix>({{"", 1}});

struct Spelling {
  std::string_view noun;
  std::string_view how;
  std::span<const Suffix> suffixes;
};

Spelling SpellingOf(Unit unit) {
  switch (unit) {
    case Unit::kBytes:
      return {"a size", "write bytes, or a number with K, M, G or T (of 1024), such as \"512M\"", kSizes};
    case Unit::kDuration:
      return {"a duration", "write seconds, or a number with ms, s, m or h, such as \"1.5s\"", kDurations};
    case Unit::kCpus: return {"a number of CPUs", "write a number such as 2 or 0.5", kCpus};
    case Unit::kCount: return {"a whole number", "write a number such as 64", kCounts};
  }
  return {};
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view TakeDigits(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && IsDigit(text[end])) ++end;
  const std::string_view digits = text.substr(0, end);
  text.remove_prefix(end);
  return digits;
}

const Suffix* FindSuffix(Unit unit, std::span<const Suffix> suffixes, std::string_view text) {
  // "64KiB" says the same as "64K"; "64KB" is left out because half of the world reads it as 64,000.
  if (unit == Unit::kBytes && text.size() == 3 && text.ends_with("iB")) text = text.substr(0, 1);
  for (const Suffix& suffix : suffixes) {
    if (suffix.text == text) return &suffix;
  }
  return nullptr;
}

Wide ToWide(std::string_view digits) {
  Wide value = 0;
  for (const char c : digits) value = value * 10 + static_cast<unsigned>(c - '0');
  return value;
}

// value / 10^decimals without trailing zeros.
std::string Decimal(std::uint64_t value, std::size_t decimals) {
  std::uint64_t one = 1;
  for (std::size_t i = 0; i < decimals; ++i) one *= 10;
  std::string text = fmt::format("{}.{:0{}}", value / one, value % one, decimals);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::string Quoted(std::string_view text) {
  constexpr std::size_t kShown = 60;
  std::string shown = "\"";
  for (const char c : text.substr(0, kShown)) shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return shown + (text.size() > kShown ? "…\"" : "\"");
}

Expected<std::uint64_t> ParseNumber(Unit unit, std::string_view text) {
  const Spelling spelling = SpellingOf(unit);
  const auto wrong = [&](std::string why) {
    return std::unexpected(Error{.step = {}, .message = std::move(why), .hint = std::string(spelling.how)});
  };
  const auto unreadable = [&] { return wrong(fmt::format("{} is not {}", Quoted(text), spelling.noun)); };

  if (text.starts_with('-') && text.size() > 1 && IsDigit(text[1])) {
    return wrong(fmt::format("{} is negative", Quoted(text)));
  }
  std::string_view rest = text;
  const std::string_view whole = TakeDigits(rest);
  std::string_view decimals;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    decimals = TakeDigits(rest);
    if (decimals.empty()) return unreadable();
  }
  const Suffix* suffix = FindSuffix(unit, spelling.suffixes, rest);
  if (whole.empty() || suffix == nullptr) return unreadable();
  const auto too_large = [&] { return wrong(fmt::format("{} is too large", Quoted(text))); };
  if (whole.size() > kMaxDigits) return too_large();

  while (decimals.ends_with('0')) decimals.remove_suffix(1);
  const bool can_be_divided = suffix->factor > 1;
  if (!decimals.empty() && !can_be_divided) return wrong(fmt::format("{} is not whole", Quoted(text)));
  if (decimals.size() > kMaxDecimals) return wrong(fmt::format("{} has more than nine decimals", Quoted(text)));

  Wide scale = 1;
  for (std::size_t i = 0; i < decimals.size(); ++i) scale *= 10;
  const Wide value = ToWide(whole) * suffix->factor + ToWide(decimals) * suffix->factor / scale;
  if (value >= ~std::uint64_t{0}) return too_large();  // the very last value means "unlimited"
  return static_cast<std::uint64_t>(value);
}

std::string FormatNumber(Unit unit, std::uint64_t value) {
  switch (unit) {
    case Unit::kBytes:
      for (std::size_t i = kSizes.size() - 1; i > 0; --i) {
        if (value != 0 && value % kSizes[i].factor == 0) {
          return fmt::format("{}{}", value / kSizes[i].factor, kSizes[i].text);
        }
      }
      return fmt::format("{}", value);
    case Unit::kDuration:
      if (value == 0) return "0s";
      if (value % (3600 * kSecond) == 0) return fmt::format("{}h", value / (3600 * kSecond));
      if (value % (60 * kSecond) == 0) return fmt::format("{}m", value / (60 * kSecond));
      if (value >= kSecond) return Decimal(value, 9) + "s";
      return Decimal(value, 6) + "ms";
    case Unit::kCpus: return Decimal(value, 3);
    case Unit::kCount: return fmt::format("{}", value);
  }
  return {};
}

}  // namespace belljar::policy
