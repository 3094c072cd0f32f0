// Runs before the first paint, so that the page does not flash in the wrong theme.
(() => {
  const stored = localStorage.getItem("kglm-theme");
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
})();
