// SPDX-License-Identifier: Apache-2.0
// Runs before the page is drawn, so that it never flashes in the other theme.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem('belay.theme');
  } catch {
    // No storage (a private window): the system's theme.
  }
  if (theme === 'light' || theme === 'dark') {
    document.documentElement.dataset.theme = theme;
  }
})();
