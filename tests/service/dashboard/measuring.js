// Contrast of every visible text with what is behind it, and of every mark of a chart.
(() => {
  const parse = (text) => {
    const found = text.match(/[\d.]+/g).map(Number);
    return { rgb: found.slice(0, 3), alpha: found.length > 3 ? found[3] : 1 };
  };
  const light = (rgb) => {
    const [r, g, b] = rgb.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const found = parse(getComputedStyle(at).backgroundColor);
      if (found.alpha === 1) return found.rgb;
    }
    return [255, 255, 255];
  };
  const contrast = (a, b) => {
    const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const isShown = (node) => node.checkVisibility() && node.getClientRects().length > 0;
  const weak = [];
  let measured = 0;
  for (const node of document.querySelectorAll("body *")) {
    const isMark = node.matches("svg .dot, svg .column, svg .line, svg .target, .key");
    const hasText = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!(isMark || hasText) || !isShown(node) || node.tagName === "title") continue;
    const style = getComputedStyle(node);
    const inSvg = node.namespaceURI.endsWith("svg");
    let colour = style.color;
    if (inSvg) colour = node.matches(".line, .target") ? style.stroke : style.fill;
    else if (node.matches(".key")) colour = style.backgroundColor;
    const base = behind(inSvg || node.matches(".key") ? node.parentElement.closest("figure, section, td, div") : node);
    const found = contrast(parse(colour).rgb, base);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    measured += 1;
    if (found < (isMark || isLarge ? 3 : 4.5)) weak.push(`${node.tagName} ${node.className.baseVal ?? node.className} ${node.textContent.slice(0, 30)} ${found.toFixed(2)}`);
  }
  return { measured, weak };
})()
