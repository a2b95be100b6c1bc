/** The page's own icons while another one stands in for them. */
const own = new WeakMap<HTMLLinkElement, string>();

/** Shows progress as the icon of the tab. @param percent 0 … 100; null brings the page's own icon back */
export function showInIcon(percent: number | null): void {
  for (const link of document.querySelectorAll<HTMLLinkElement>('link[rel="icon"]')) {
    const href = own.get(link) ?? link.getAttribute('href') ?? '';
    own.set(link, href);
    const shown = percent === null ? href : drawn(percent);
    // The browser loads an icon anew whenever it is set.
    if (link.getAttribute('href') !== shown) link.setAttribute('href', shown);
  }
}

/** A ring that is filled clockwise, in the colours of the logo. */
function drawn(percent: number): string {
  const around = 2 * Math.PI * 12;
  const ring = (stroke: string, length: number) => {
    const line = { fill: 'none', stroke, 'stroke-width': 6 };
    const dashes = { 'stroke-dasharray': `${length} ${around}`, transform: 'rotate(-90 16 16)' };
    return element('circle', { cx: 16, cy: 16, r: 12, ...line, ...dashes });
  };
  const rings = ring('#d8b8a8', around) + ring('#b8431c', (around * percent) / 100);
  const svg = element('svg', { xmlns: 'http://www.w3.org/2000/svg', viewBox: '0 0 32 32' }, rings);
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function element(
  name: string,
  attributes: Readonly<Record<string, string | number>>,
  content = '',
): string {
  const list = Object.entries(attributes).map(([key, value]) => `${key}="${value}"`);
  return `<${name} ${list.join(' ')}>${content}</${name}>`;
}
