// Before anything is painted, so that a dark page does not begin with a white flash. src/settings/theme.ts
// does the same from then on.
(() => {
  let kept = null;
  try {
    kept = localStorage.getItem("foliot.theme");
  } catch {
    // Storage may be forbidden: the system's theme it is.
  }
  const isDark =
    kept === '"dark"' || (kept !== '"light"' && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
})();
