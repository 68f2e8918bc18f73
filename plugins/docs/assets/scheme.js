/** Takes up the choice of light or dark of the console before the first paint; without one the system decides. */
(() => {
  try {
    const wanted = localStorage.getItem('console-color-scheme');
    if (wanted === 'light' || wanted === 'dark') document.documentElement.dataset.scheme = wanted;
  } catch {
    // Storage is forbidden in some browsers.
  }
})();
