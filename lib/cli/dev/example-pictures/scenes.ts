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

function glow(id: string, colour: string): string {
  return `<radialGradient id="${id}"><stop offset="0" stop-color="${colour}"/><stop offset="1" stop-color="${colour}" stop-opacity="0"/></radialGradient>`;
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

function lighthouse(): string {
  const random = randomFrom(11);
  const wave = (index: number) => {
    const y = 470 + index * index * 1.05;
    const shade = 30 + index * 1.6;
    return `<path d="M-80 ${y} Q ${200 + random() * 200} ${y - 14 - index} 420 ${y} T 860 ${y} T 1360 ${y} V 820 H -80 Z" fill="hsl(${205 - index}, 46%, ${shade * 0.62}%)" opacity="0.72"/><path d="M${random() * 900} ${y + 4} q 90 ${-8 - index * 0.6} 210 2" stroke="#e6d9cf" stroke-width="${1 + index * 0.16}" fill="none" opacity="0.5"/>`;
  };
  return svg(
    1280,
    720,
    gradient('sky', '0 #23324f', '.45 #5d6f8e', '.72 #d99a72', '1 #f3c48d') +
      gradient('tower', '0 #f4ece2', '1 #b9a899') +
      glow('lamp', '#fff3c4'),
    `<rect width="1280" height="480" fill="url(#sky)"/>
    <rect width="1280" height="420" filter="url(#clouds)" opacity="0.5"/>
    <g filter="url(#soft)" opacity="0.55"><polygon points="962,196 -60,70 -60,215" fill="#fff0bd"/><polygon points="962,196 1340,130 1340,205" fill="#fff0bd"/></g>
    <g filter="url(#ripple)">${many(15, wave)}</g>
    <g filter="url(#paint)"><path d="M790 500 Q 850 420 930 428 L 1010 424 Q 1110 430 1180 486 L 1290 520 V 640 L 1100 590 L 900 566 Z" fill="#2c2a2e"/><path d="M830 490 Q 900 436 1000 440 Q 1090 446 1150 486" stroke="#585049" stroke-width="9" fill="none"/></g>
    <path d="M934 436 L 946 224 H 978 L 992 436 Z" fill="url(#tower)"/><path d="M939 352 L 942 300 H 984 L 987 352 Z M945 244 H 981 L 982 262 H 944 Z" fill="#b0402e"/>
    <rect x="938" y="214" width="48" height="11" rx="3" fill="#3a3536"/><rect x="949" y="180" width="26" height="34" fill="#fff1b8"/><path d="M944 181 L 962 158 L 980 181 Z" fill="#3a3536"/>
    <circle cx="962" cy="196" r="120" fill="url(#lamp)" opacity="0.9"/>
    ${many(9, () => `<path d="M${180 + random() * 480} ${150 + random() * 160} q 9 -9 16 0 q 8 -9 17 0" stroke="#2b3346" stroke-width="2.4" fill="none"/>`)}`,
  );
}

function balloons(): string {
  const random = randomFrom(5);
  const colours = [
    ['#d5502f', '#f2b263'],
    ['#2f6f86', '#e9d8b4'],
    ['#8a3d63', '#f0c5a0'],
    ['#c98a2b', '#f7ecd2'],
  ] as const;
  const balloon = (x: number, y: number, size: number, index: number) => {
    const [a, b] = colours[index % colours.length] ?? colours[0];
    const stripe = (from: number, to: number) =>
      `<path d="M0 -100 C ${from} -98 ${from * 1.05} 10 ${from * 0.16} 62 L ${to * 0.16} 62 C ${to * 1.05} 10 ${to} -98 0 -100 Z" fill="${b}"/>`;
    return `<g transform="translate(${x} ${y}) scale(${size})"><path d="M0 -100 C 84 -98 88 10 14 62 L -14 62 C -88 10 -84 -98 0 -100 Z" fill="${a}"/>${stripe(-58, -26)}${stripe(26, 58)}<path d="M-14 62 C -88 10 -84 -98 0 -100 C -40 -80 -44 10 -14 62 Z" fill="#000" opacity="0.14"/><path d="M-11 64 L -8 84 M 11 64 L 8 84" stroke="#4a3527" stroke-width="2"/><rect x="-10" y="84" width="20" height="15" rx="3" fill="#6b472d"/></g>`;
  };
  return svg(
    1280,
    720,
    gradient('sky', '0 #6fa0c4', '.5 #f0cfae', '.8 #f7b989', '1 #f1a06c') +
      glow('sun', '#fff4d6') +
      gradient('near', '0 #c77a43', '1 #7a4226') +
      gradient('far', '0 #d79a68', '1 #b06a40'),
    `<rect width="1280" height="720" fill="url(#sky)"/><rect width="1280" height="460" filter="url(#clouds)" opacity="0.4"/>
    <circle cx="930" cy="440" r="260" fill="url(#sun)"/><circle cx="930" cy="440" r="42" fill="#fff7e0"/>
    <g filter="url(#paint)">${ridge(random, { width: 1280, height: 720, y: 486, rough: 18, fill: '#cf9d84' })}${ridge(random, { width: 1280, height: 720, y: 540, rough: 30, fill: 'url(#far)' })}${ridge(random, { width: 1280, height: 720, y: 632, rough: 38, fill: 'url(#near)' })}</g>
    ${many(26, () => `<path d="M${random() * 1280} ${640 + random() * 80} q 60 -12 150 0" stroke="#f0b27c" stroke-width="2" fill="none" opacity="0.35"/>`)}
    ${balloon(360, 270, 1.45, 0)}${balloon(740, 190, 0.8, 1)}${balloon(1090, 300, 0.62, 2)}${balloon(585, 410, 0.42, 3)}${balloon(160, 440, 0.34, 1)}${balloon(1190, 150, 0.36, 3)}`,
  );
}

function street(): string {
  const random = randomFrom(23);
  const house = (x: number, width: number, top: number, shade: string) =>
    `<polygon points="${x},${top} ${x + width / 2},${top - 70} ${x + width},${top} ${x + width},840 ${x},840" fill="${shade}"/>${many(
      Math.floor((800 - top) / 105) * 2,
      (index) => {
        const lit = random() > 0.35;
        const wx = x + width * (index % 2 ? 0.58 : 0.18);
        const wy = top + 40 + Math.floor(index / 2) * 105;
        return `<rect x="${wx}" y="${wy}" width="${width * 0.24}" height="58" rx="3" fill="${lit ? '#f5b458' : '#1b2233'}" opacity="${lit ? 0.92 : 1}"/>`;
      },
    )}`;
  const lantern = (x: number, y: number, size: number) =>
    `<circle cx="${x}" cy="${y}" r="${size * 3.4}" fill="url(#light)" opacity="0.75"/><ellipse cx="${x}" cy="${y}" rx="${size * 0.72}" ry="${size}" fill="#e8562f"/><ellipse cx="${x}" cy="${y}" rx="${size * 0.36}" ry="${size * 0.92}" fill="#ffb65c"/><rect x="${x - size * 0.3}" y="${y - size * 1.15}" width="${size * 0.6}" height="${size * 0.22}" fill="#2a1b18"/>`;
  const lanterns = range(9).map((index) => {
    const t = index / 8;
    return { x: 70 + t * 580, y: 330 + Math.sin(t * Math.PI) * 96 + (index % 2) * 26, size: 24 };
  });
  const scene = `<rect width="720" height="840" fill="url(#night)"/>${house(-30, 210, 330, '#232a3e')}${house(150, 130, 470, '#2d3550')}${house(450, 120, 450, '#2a324b')}${house(540, 220, 300, '#1f2638')}<polygon points="290,840 336,600 384,600 440,840" fill="#4a4f66"/><rect x="318" y="440" width="90" height="200" fill="#59587a" opacity="0.65"/><path d="M60 320 Q 360 470 664 320" stroke="#141824" stroke-width="3" fill="none"/>${lanterns.map(({ x, y, size }) => lantern(x, y, size)).join('')}`;
  return svg(
    720,
    1280,
    gradient('night', '0 #10162a', '.6 #33406a', '1 #6b6c94') +
      gradient('ground', '0 #20253a', '1 #0b0e18') +
      glow('light', '#ffb45e'),
    `<g filter="url(#paint)">${scene}</g><rect y="830" width="720" height="450" fill="url(#ground)"/>
    <g filter="url(#ripple)" opacity="0.72"><g transform="translate(0 1664) scale(1 -1)">${scene}</g></g><rect y="832" width="720" height="448" fill="url(#ground)" opacity="0.5"/>
    <g transform="translate(352 905)"><path d="M-92 -66 Q 0 -150 92 -66 Q 60 -84 46 -66 Q 22 -86 0 -66 Q -22 -86 -46 -66 Q -60 -84 -92 -66 Z" fill="#b23b32"/><path d="M0 -110 V 30" stroke="#1a1417" stroke-width="4"/><path d="M-26 -40 Q 0 -70 26 -40 L 40 92 H -40 Z" fill="#1b2030"/><circle cx="0" cy="-58" r="17" fill="#c99a78"/><path d="M-20 92 V 150 M 18 92 V 150" stroke="#12151f" stroke-width="15"/></g>
    ${many(170, () => {
      const [x, y, long] = [random() * 760, random() * 1280, 18 + random() * 34];
      return `<path d="M${x} ${y} l -6 ${long}" stroke="#cdd8f0" stroke-width="1.3" opacity="${0.12 + random() * 0.3}"/>`;
    })}`,
  );
}

function aurora(): string {
  const random = randomFrom(31);
  const tree = (x: number, y: number, size: number) =>
    `<g transform="translate(${x} ${y}) scale(${size})">${many(4, (index) => `<polygon points="0,${-120 + index * 26} ${26 + index * 9},${-62 + index * 28} ${-26 - index * 9},${-62 + index * 28}" fill="${index % 2 ? '#16263a' : '#1c3048'}"/><path d="M0 ${-120 + index * 26} L ${-22 - index * 7} ${-70 + index * 28} L -6 ${-84 + index * 27} Z" fill="#cfe1ee" opacity="0.7"/>`)}<rect x="-5" y="20" width="10" height="22" fill="#1a1a22"/></g>`;
  const curtain = (index: number) => {
    const x = 60 + index * 30;
    const top = 60 + Math.sin(index * 0.34) * 52;
    return `<rect x="${x}" y="${top}" width="34" height="${250 + Math.sin(index * 0.5) * 90}" fill="url(#veil)" opacity="${0.35 + 0.3 * Math.sin(index * 0.7) ** 2}"/>`;
  };
  return svg(
    1280,
    720,
    gradient('sky', '0 #070d22', '.6 #123048', '1 #1d4a58') +
      `<linearGradient id="veil" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#8f6bd6" stop-opacity="0"/><stop offset=".35" stop-color="#5ad6a4" stop-opacity=".9"/><stop offset="1" stop-color="#39e08f" stop-opacity="0"/></linearGradient>` +
      glow('window', '#ffc56b') +
      gradient('snow', '0 #b9d3e2', '1 #6d8ba6'),
    `<rect width="1280" height="720" fill="url(#sky)"/>${many(190, () => `<circle cx="${random() * 1280}" cy="${random() * 420}" r="${0.5 + random() * 1.2}" fill="#fff" opacity="${0.3 + random() * 0.7}"/>`)}
    <g filter="url(#soft)"><g filter="url(#ripple)">${many(39, curtain)}</g></g>
    <g filter="url(#paint)">${ridge(random, { width: 1280, height: 720, y: 440, rough: 44, fill: '#1b3145' })}${ridge(random, { width: 1280, height: 720, y: 500, rough: 22, fill: '#27445b' })}${many(26, (index) => tree(index * 52 + random() * 30, 530 + random() * 24, 0.42 + random() * 0.3))}${ridge(random, { width: 1280, height: 720, y: 576, rough: 16, fill: 'url(#snow)' })}</g>
    <g transform="translate(560 470)"><polygon points="0,130 0,52 160,52 160,130" fill="#4a2f22"/>${many(5, (index) => `<path d="M0 ${66 + index * 15} H 160" stroke="#2f1d15" stroke-width="3"/>`)}<polygon points="-26,58 80,-24 186,58" fill="#e4eff6"/><polygon points="-14,58 80,-12 174,58" fill="#35222a" opacity="0.35"/><rect x="28" y="76" width="36" height="34" fill="#ffd27d"/><rect x="104" y="76" width="30" height="54" fill="#281812"/><path d="M46 76 V 110 M 28 93 H 64" stroke="#4a2f22" stroke-width="3"/><rect x="122" y="-14" width="20" height="40" fill="#3b2a26"/><circle cx="46" cy="94" r="110" fill="url(#window)" opacity="0.65"/></g>
    ${tree(300, 610, 1.5)}${tree(210, 650, 1.1)}${tree(980, 620, 1.7)}${tree(1110, 660, 1.25)}
    <g filter="url(#soft)"><path d="M690 452 q 16 -40 -4 -70 q -18 -34 8 -70" stroke="#c8d4de" stroke-width="16" fill="none" opacity="0.5"/></g>`,
  );
}

/** The pictures of the studio's examples, drawn by code, by their file names. */
export const scenes = {
  lighthouse: { width: 1280, height: 720, svg: lighthouse() },
  balloons: { width: 1280, height: 720, svg: balloons() },
  street: { width: 720, height: 1280, svg: street() },
  aurora: { width: 1280, height: 720, svg: aurora() },
} as const;
