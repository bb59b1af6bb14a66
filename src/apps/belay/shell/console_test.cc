// SPDX-License-Identifier: Apache-2.0
// Interrupts and progress.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/progress.h"

namespace belay::apps {
namespace {

TEST(InterruptDeathTest, TheFirstSetsTheFlagAndTheSecondEnds) {
  for (const int signal : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          const std::atomic<bool>& interrupted = CatchInterrupts();
          if (interrupted) std::_Exit(1);
          std::raise(signal);
          if (!interrupted) std::_Exit(2);
          std::raise(signal);
          std::_Exit(3);
        },
        testing::KilledBySignal(signal), "");
  }
}

TEST(InterruptDeathTest, CanBeArmedAgain) {
  EXPECT_EXIT(
      {
        const std::atomic<bool>& interrupted = CatchInterrupts();
        std::raise(SIGINT);
        CatchInterrupts();
        if (interrupted) std::_Exit(1);
        std::raise(SIGINT);
        std::_Exit(interrupted ? 0 : 2);
      },
      testing::ExitedWithCode(0), "");
}

class ProgressTest : public testing::Test {
 protected:
  std::ostringstream out_, err_;
  diag::Catalogue catalogue_;
  Context context_{.out = out_,
                   .err = err_,
                   .catalogue = catalogue_,
                   .err_is_tty = false,
                   .out_style = {},
                   .err_style = {},
                   .command = nullptr};
  double now_s_ = 100;
  Progress::Clock clock_ = [this] { return now_s_; };
};

TEST_F(ProgressTest, InALogALineEveryFiveSeconds) {
  {
    Progress progress(context_, clock_);
    for (int i = 0; i < 110; ++i) {
      now_s_ += 0.1;
      progress.Update("step " + std::to_string(i));
    }
  }
  const std::string text = err_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

TEST_F(ProgressTest, OnATerminalOneLineThatGoesAway) {
  context_.err_is_tty = true;
  {
    Progress progress(context_, clock_);
    progress.Update("too early");
    now_s_ += 0.2;
    progress.Update("one");
    progress.Update("too soon");
    now_s_ += 0.2;
    progress.Update("two");
  }
  EXPECT_EQ(err_.str(), "\r\x1b[Kone\r\x1b[Ktwo\r\x1b[K");
}

TEST_F(ProgressTest, ShortWorkIsSilent) {
  for (const bool tty : {false, true}) {
    context_.err_is_tty = tty;
    Progress progress(context_, clock_);
    progress.Update("x");
  }
  EXPECT_EQ(err_.str(), "");
}

TEST(PrintJsonTest, BytesThatAreNotUtf8DoNotThrow) {
  std::ostringstream out, err;
  const diag::Catalogue catalogue;
  const Context context{.out = out,
                        .err = err,
                        .catalogue = catalogue,
                        .out_style = {},
                        .err_style = {},
                        .command = nullptr};
  PrintJson(context, {{"path", "a\xff"}, {"zh", "中"}});
  EXPECT_EQ(out.str(),
            "{\n  \"path\": \"a\xef\xbf\xbd\",\n  \"zh\": \"中\"\n}\n");
}

}  // namespace
}  // namespace belay::apps
