import { gradient, many, randomFrom, ridge, svg } from './drawing';

/** A start image that the repository draws, with what is asked for it. */
export interface Scene {
  readonly name: string;
  readonly prompt: string;
  readonly seed: number;
  /** Of 1280×720. */
  readonly svg: string;
}

interface Light {
  readonly name: string;
  readonly sky: readonly string[];
  readonly far: string;
  readonly near: string;
  readonly ground: string;
}

const lights: readonly Light[] = [
  {
    name: 'dawn',
    sky: ['0 #6d86b8', '.6 #f0b8a0', '1 #ffe0b0'],
    far: '#8b7f9c',
    near: '#5b5f74',
    ground: '#7a6b5d',
  },
  {
    name: 'noon',
    sky: ['0 #3f86d8', '1 #cfe7f7'],
    far: '#7fa0b0',
    near: '#5c8a55',
    ground: '#7fa64e',
  },
  {
    name: 'dusk',
    sky: ['0 #2c2850', '.6 #b0506a', '1 #f5a860'],
    far: '#4a3d5c',
    near: '#33304a',
    ground: '#40364a',
  },
  {
    name: 'night',
    sky: ['0 #060c1e', '1 #24385c'],
    far: '#16233c',
    near: '#0e182c',
    ground: '#14203a',
  },
  {
    name: 'fog',
    sky: ['0 #b4bcc2', '1 #dde0df'],
    far: '#a6b0b5',
    near: '#7f8d90',
    ground: '#8c968f',
  },
];

interface Subject {
  readonly name: string;
  readonly prompt: string;
  readonly draw: (random: () => number, light: Light) => string;
}

const subjects: readonly Subject[] = [
  {
    name: 'boat',
    prompt:
      'A small sailing boat on a lake, {light}. The boat glides to the left, ripples spread over the water.',
    draw: (random, { sky }) => {
      const water = sky[0]?.split(' ')[1];
      const ripple = () =>
        `<path d="M${random() * 1200} ${430 + random() * 270} h ${40 + random() * 160}" stroke="#fff" stroke-width="2" opacity=".35"/>`;
      return `<rect y="420" width="1280" height="300" fill="${water}"/><g filter="url(#ripple)">${many(60, ripple)}</g><path d="M560 500 H 780 L 740 545 H 600 Z" fill="#5a3826"/><path d="M662 490 V 250 L 560 490 Z" fill="#f5efe2"/><path d="M676 490 V 280 L 770 490 Z" fill="#d9c8ac"/><path d="M668 240 V 505" stroke="#3a2618" stroke-width="6"/>`;
    },
  },
  {
    name: 'balloon',
    prompt: 'A hot-air balloon over hills, {light}. It rises slowly while the camera follows it.',
    draw: (random, { near }) => {
      const stripes = many(
        7,
        (i) =>
          `<path d="M640 90 Q ${490 + i * 50} 230 ${610 + i * 10} 380" stroke="${i % 2 ? '#f4d35e' : '#d1495b'}" stroke-width="46" fill="none"/>`,
      );
      return `${ridge(random, { width: 1280, height: 720, y: 540, rough: 40, fill: near })}<ellipse cx="640" cy="220" rx="150" ry="160" fill="#d1495b"/>${stripes}<path d="M610 380 L 620 440 M 670 380 L 660 440" stroke="#33251c" stroke-width="4"/><rect x="612" y="438" width="56" height="42" rx="6" fill="#7a4f2d"/>`;
    },
  },
  {
    name: 'tree',
    prompt:
      'A lone tree on a meadow, {light}. Wind moves its leaves and the grass, the camera stands still.',
    draw: (random, { near }) => {
      const leaf = () => {
        const [angle, r] = [random() * Math.PI * 2, 150 * Math.sqrt(random())];
        return `<circle cx="${640 + Math.cos(angle) * r * 1.4}" cy="${270 + Math.sin(angle) * r}" r="${14 + random() * 16}" fill="hsl(${80 + random() * 40}, 35%, ${22 + random() * 18}%)"/>`;
      };
      const blade = () => {
        const x = random() * 1280;
        return `<path d="M${x} 720 q ${-6 + random() * 12} -40 ${-14 + random() * 28} ${-50 - random() * 70}" stroke="${near}" stroke-width="5" fill="none"/>`;
      };
      return `<path d="M610 600 Q 640 450 625 330 L 660 330 Q 650 450 690 600 Z" fill="#4a3524"/>${many(160, leaf)}${many(220, blade)}`;
    },
  },
  {
    name: 'house',
    prompt:
      'A house with a smoking chimney below mountains, {light}. Smoke rises, light flickers in its windows, the camera pushes in.',
    draw: (random, { near }) => {
      const smoke = (i: number) =>
        `<circle cx="${772 + random() * 20 + i * 7}" cy="${268 - i * 19}" r="${12 + i * 3}" fill="#e8e6e2" opacity=".4"/>`;
      const window = (x: number) =>
        `<rect x="${x}" y="440" width="54" height="58" fill="#ffd68a"/><path d="M${x + 27} 440 v 58 M ${x} 469 h 54" stroke="#4a3020" stroke-width="4"/>`;
      return `${ridge(random, { width: 1280, height: 720, y: 470, rough: 60, fill: near })}<rect x="500" y="400" width="320" height="190" fill="#8c5a3c"/><polygon points="470,405 660,270 850,405" fill="#4c3440"/><rect x="750" y="275" width="44" height="80" fill="#5b3a30"/>${window(540)}${window(720)}<rect x="636" y="480" width="56" height="110" fill="#3a2418"/><g filter="url(#soft)">${many(10, smoke)}</g>`;
    },
  },
];

/** 20 scenes: each subject in each light. Nothing of them changes, so that videos of other machines compare. */
export const compareScenes: readonly Scene[] = lights.flatMap((light, i) =>
  subjects.map(({ name, prompt, draw }, k) => {
    const seed = 1000 + i * subjects.length + k;
    const random = randomFrom(seed);
    const size = { width: 1280, height: 720 };
    const content = `<rect width="1280" height="720" fill="url(#sky)"/><rect width="1280" height="400" filter="url(#clouds)" opacity=".4"/><g filter="url(#paint)">${ridge(random, { ...size, y: 400, rough: 50, fill: light.far })}${ridge(random, { ...size, y: 580, rough: 14, fill: light.ground })}${draw(random, light)}</g>`;
    return {
      name: `${name}-${light.name}`,
      prompt: prompt.replace('{light}', light.name === 'fog' ? 'in fog' : `at ${light.name}`),
      seed,
      svg: svg(size.width, size.height, gradient('sky', ...light.sky), content),
    };
  }),
);
