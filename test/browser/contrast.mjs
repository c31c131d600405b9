/**
 * Runs in the page: every visible text against what is behind it (WCAG 2.2, 1.4.3).
 * @returns {{ texts: number, weak: string[] }}
 */
export function contrastOf() {
  const CONTRAST_MIN = 4.5;
  const channels = (color) => {
    const [r, g, b, a = 1] = color.match(/[\d.]+/g).map(Number);
    return { r, g, b, a };
  };
  const luminance = ({ r, g, b }) => {
    const linear = [r, g, b].map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (node) => {
    for (let at = node; at !== null; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.a === 1) return color;
    }
    return { r: 255, g: 255, b: 255, a: 1 };
  };
  const weak = [];
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text !== null; text = walker.nextNode()) {
    const node = text.parentElement;
    if (text.textContent.trim() === '' || !node.checkVisibility() || ['SCRIPT', 'STYLE'].includes(node.tagName))
      continue;
    texts++;
    const [light, dark] = [luminance(channels(getComputedStyle(node).color)), luminance(behind(node))].sort(
      (a, b) => b - a,
    );
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < CONTRAST_MIN) weak.push(`${ratio.toFixed(2)} ${text.textContent.trim().slice(0, 40)}`);
  }
  return { texts, weak: [...new Set(weak)] };
}
