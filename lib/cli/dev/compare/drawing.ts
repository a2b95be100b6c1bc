/** A random number generator with a fixed start: the pictures are the same each time (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index);
/** What `draw` gives for 0 … count − 1, joined. */
export const many = (count: number, draw: (index: number) => string) =>
  range(count).map(draw).join('');

/** A vertical gradient; stops as `offset colour`. */
export function gradient(id: string, ...stops: readonly string[]): string {
  const parts = stops.map((stop) => {
    const [offset, colour] = stop.split(' ');
    return `<stop offset="${offset}" stop-color="${colour}"/>`;
  });
  return `<linearGradient id="${id}" x1="0" y1="0" x2="0" y2="1">${parts.join('')}</linearGradient>`;
}

/** A hill line from the left to the right edge, filled down to the lower one. */
export function ridge(
  random: () => number,
  {
    width,
    height,
    y,
    rough,
    fill,
  }: Record<'width' | 'height' | 'y' | 'rough', number> & {
    fill: string;
  },
): string {
  const phases = range(5).map(() => random() * Math.PI * 2);
  const line = range(81).map((index) => {
    const x = (index * width) / 80;
    const wave = phases.reduce((sum, phase, k) => {
      return sum + Math.sin(phase + (x / width) * Math.PI * (1.5 + k * 2.7)) / (k + 1);
    }, 0);
    return `${x.toFixed(1)},${(y - wave * rough).toFixed(1)}`;
  });
  return `<polygon points="-40,${height + 40} -40,${y} ${line.join(' ')} ${width + 40},${y} ${width + 40},${height + 40}" fill="${fill}"/>`;
}

/** Filters of all scenes: soft clouds, painted edges, and grain. */
const filters = `
  <filter id="clouds" x="0" y="0" width="1" height="1"><feTurbulence type="fractalNoise" baseFrequency="0.004 0.013" numOctaves="5" seed="4"/><feColorMatrix values="0 0 0 0 1  0 0 0 0 1  0 0 0 0 1  0 2.6 0 0 -1.15"/></filter>
  <filter id="paint" x="-5%" y="-5%" width="110%" height="110%"><feTurbulence type="fractalNoise" baseFrequency="0.025" numOctaves="3" seed="9"/><feDisplacementMap in="SourceGraphic" scale="9" xChannelSelector="R" yChannelSelector="G"/></filter>
  <filter id="ripple" x="-5%" y="-5%" width="110%" height="110%"><feTurbulence type="fractalNoise" baseFrequency="0.012 0.09" numOctaves="3" seed="3"/><feDisplacementMap in="SourceGraphic" scale="46" xChannelSelector="R" yChannelSelector="G"/></filter>
  <filter id="soft" x="-30%" y="-30%" width="160%" height="160%"><feGaussianBlur stdDeviation="7"/></filter>
  <filter id="grain" x="0" y="0" width="1" height="1"><feTurbulence type="fractalNoise" baseFrequency="0.8" numOctaves="2" seed="1"/><feColorMatrix values="0 0 0 0 0.5  0 0 0 0 0.5  0 0 0 0 0.5  0 0 0 0.5 -0.2"/></filter>`;

/** A whole picture, with the filters and grain of all. */
export function svg(width: number, height: number, defs: string, content: string): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><defs>${filters}${defs}</defs>${content}<rect width="${width}" height="${height}" filter="url(#grain)" opacity="0.35"/></svg>`;
}
