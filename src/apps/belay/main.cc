// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "apps/belay/shell/cli.h"
#include "apps/belay/shell/variable.h"

namespace {

using belay::apps::Variable;

// The width of the terminal, kept readable; 80 without one.
int Columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 40) {
    return 80;
  }
  return size.ws_col < 100 ? size.ws_col : 100;
}

}  // namespace

int main(int argc, char** argv) {
  // hwloc writes to stderr where /sys is not mounted (a bare chroot); we go on
  // without a topology and say what matters ourselves. A user's value stays.
  setenv("HWLOC_HIDE_ERRORS", "2", /*overwrite=*/0);
  const belay::apps::Environment environment = {
      .out = std::cout,
      .err = std::cerr,
      .lang = belay::diag::LangFromLocale(
          Variable("LC_ALL"), Variable("LC_MESSAGES"), Variable("LANG")),
      .out_is_tty = isatty(STDOUT_FILENO) != 0,
      .err_is_tty = isatty(STDERR_FILENO) != 0,
      .no_color = !Variable("NO_COLOR").empty() || Variable("TERM") == "dumb",
      .columns = Columns(),
      .in = &std::cin,
  };
  return belay::apps::RunBelay({argv + 1, argv + argc}, environment);
}
