// SPDX-License-Identifier: Apache-2.0
#include "diag/lang.h"

#include <gtest/gtest.h>

namespace belay::diag {
namespace {

TEST(LangTest, ParsesTheTwoNames) {
  EXPECT_EQ(ParseLang("en"), Lang::kEn);
  EXPECT_EQ(ParseLang("zh"), Lang::kZh);
  EXPECT_EQ(ParseLang("de"), std::nullopt);
  EXPECT_EQ(ParseLang(""), std::nullopt);
}

TEST(LangFromLocaleTest, TheFirstThatIsNotEmptyDecides) {
  EXPECT_EQ(LangFromLocale("", "", "zh_CN.UTF-8"), Lang::kZh);
  EXPECT_EQ(LangFromLocale("", "zh_CN.UTF-8", "en_US.UTF-8"), Lang::kZh);
  EXPECT_EQ(LangFromLocale("C.UTF-8", "zh_CN.UTF-8", "zh_CN.UTF-8"), Lang::kEn);
  EXPECT_EQ(LangFromLocale("zh_CN.UTF-8", "C", "C"), Lang::kZh);
  EXPECT_EQ(LangFromLocale("", "", ""), Lang::kEn);
}

TEST(LangFromLocaleTest, SpellingsOfChinese) {
  for (const char* locale : {"zh", "zh_CN", "zh_TW.utf8", "zh-Hans",
                             "ZH_CN.UTF8", "zh_CN.UTF-8@pinyin"}) {
    EXPECT_EQ(LangFromLocale(locale, "", ""), Lang::kZh) << locale;
  }
  for (const char* locale : {"zha_CN", "C", "POSIX", "en_US.UTF-8", "zh_CN.GBK",
                             "zh_CN.gb18030", "nonsense"}) {
    EXPECT_EQ(LangFromLocale(locale, "", ""), Lang::kEn) << locale;
  }
}

}  // namespace
}  // namespace belay::diag
