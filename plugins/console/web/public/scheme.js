/** Sets light or dark before the first paint. A file of its own, since the page allows no inline script. */
(() => {
  let wanted = 'auto';
  try {
    wanted = localStorage.getItem('console-color-scheme') ?? 'auto';
  } catch {
    // Storage is forbidden in some browsers; then the system decides.
  }
  const dark = wanted === 'dark' || (wanted !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.setAttribute('data-mantine-color-scheme', dark ? 'dark' : 'light');
})();
