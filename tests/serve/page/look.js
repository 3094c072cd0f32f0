() => {
  // How wide the page is, whether it is dark, and the texts whose colour is too close to what is behind them.
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
  const light = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.push(rgba(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const faint = [];
  let texts = 0;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest(".unseen, .skip, .off, [aria-pressed=false].toggle, noscript")) continue;
    const style = getComputedStyle(element);
    const back = behind(element.closest("svg.graph") ? element.closest("svg").parentElement : element);
    const word_node = element.closest("svg .next-word");
    const front = over(rgba(element.closest("svg.graph") ? style.fill : style.color), back);
    const [a, b] = [light(front), light(word_node ? rgba(getComputedStyle(word_node.querySelector("rect")).fill) : back)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    texts += 1;
    if (ratio < (size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${element.className?.baseVal ?? element.className} ${walk.currentNode.textContent.trim()}`);
  }
  return { width: document.documentElement.scrollWidth, dark: light(behind(document.body)) < 0.2, texts, faint };
}
