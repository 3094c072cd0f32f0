// Runs before the first paint, so that a chosen theme does not flash in the other one.
(() => {
  const kept = localStorage.getItem("kglm-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
})();
