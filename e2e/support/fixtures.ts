import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { AxeBuilder } from '@axe-core/playwright';
import type { BrowserContext, Page } from 'playwright';
import { test as base, expect } from 'playwright/test';
import { root } from '../../lib/cli/paths';
import { fixtureModel } from '../../lib/contract';
import { publishGoldenModel } from '../../lib/models/wan/testing/golden-model';
import { f32, safetensorsBytes, type TestTensor } from '../../lib/weights/testing/files';
import { type LocalHub, startHub } from '../../lib/weights/testing/hub/server';
import { ModelsPage } from '../pages/models-page';
import { StudioPage } from '../pages/studio-page';
import { acceptTerms } from './terms';

interface Fixtures {
  /** Whether the model of tests has all of its frames, for tests in which a run has to last. */
  readonly longVideos: boolean;
  /** A hub of this test's own, which has the golden model with as few frames as the model of tests. */
  readonly hub: LocalHub;
  /** The studio, opened. The test fails when its page writes anything to the console. */
  readonly studio: StudioPage;
  /** The models page, opened. The test fails when its page writes anything to the console. */
  readonly models: ModelsPage;
}

/**
 * What Chromium writes when a fetch fails; a page cannot prevent it. From the app's own origin it is
 * still an error.
 */
const failedFetch = /^Failed to load resource: (net::ERR_|the server responded with a status of )/;

/** Lets the test fail when the page writes anything to the console while it is used. */
export async function withSilentConsole(page: Page, use: () => Promise<void>): Promise<void> {
  const said: string[] = [];
  page.on('console', (message) => {
    const { url } = message.location();
    const elsewhere = URL.canParse(url) && new URL(url).origin !== new URL(page.url()).origin;
    if (elsewhere && failedFetch.test(message.text())) return;
    said.push(`${message.type()}: ${message.text()} (${url})`);
  });
  // A worker's failed fetch shows in the developer tools only.
  page.on('response', (response) => {
    const missing =
      response.status() === 404 && /\/models\/.+/.test(new URL(response.url()).pathname);
    if (missing && new URL(response.url()).origin === new URL(page.url()).origin) {
      said.push(`not found: ${response.url()}`);
    }
  });
  page.on('pageerror', (error) => said.push(`uncaught: ${error.stack ?? error.message}`));
  await use();
  expect(said, 'the console stays silent').toEqual([]);
}

/** What the models of tests make in five seconds. */
export const fixtureVideo = { width: 1280, height: 720, frames: 41, frameRate: 8 };

/** What makes a manifest one of {@link fixtureVideo}. */
export const fixtureRate = {
  framesPerSecond: fixtureVideo.frameRate,
  maxClipFrames: fixtureVideo.frames,
};

/** The manifest of the model of tests with a third of its frames, which take long to encode. */
export function fixtureManifest() {
  const file = readFileSync(path.join(root, 'public', 'models', `${fixtureModel}.json`), 'utf8');
  return { ...JSON.parse(file), ...fixtureRate };
}

/**
 * Lets the pages of a browser begin with the model of tests, which computes far faster than the one that
 * users see, and makes {@link fixtureVideo}. Requests of workers are answered as well.
 */
export async function withFixtureModel(
  context: BrowserContext,
  { longVideos = false } = {},
): Promise<void> {
  const listed = [{ id: fixtureModel }, { id: 'wan2.2-ti2v-5b' }];
  await context.route('**/models/index.json', (route) => route.fulfill({ json: listed }));
  if (longVideos) return;
  const manifest = fixtureManifest();
  await context.route(`**/models/${fixtureModel}.json`, (route) =>
    route.fulfill({ json: manifest }),
  );
}

/** Playwright's `test` with the pages at hand, which begin with the model of tests. */
export const test = base.extend<Fixtures>({
  longVideos: [false, { option: true }],
  context: async ({ context, longVideos }, use) => {
    await withFixtureModel(context, { longVideos });
    await use(context);
  },
  // biome-ignore lint/correctness/noEmptyPattern: Playwright wants a pattern, even an empty one.
  hub: async ({}, use) => {
    const hub = await startHub();
    await publishGoldenModel(hub, fixtureRate);
    await use(hub);
    await hub.close();
  },
  studio: async ({ page }, use) => {
    const studio = new StudioPage(page);
    await withSilentConsole(page, async () => {
      await studio.open();
      await use(studio);
    });
  },
  models: async ({ page }, use) => {
    const models = new ModelsPage(page);
    await withSilentConsole(page, async () => {
      await models.open();
      await acceptTerms(page);
      await use(models);
    });
  },
});

interface View {
  readonly colorScheme: 'light' | 'dark';
  readonly width: number;
}

/** Each colour scheme and each width once: colours do not depend on the width. */
export const views: readonly [View, View] = [
  { colorScheme: 'light', width: 1280 },
  { colorScheme: 'dark', width: 390 },
];

/**
 * Checks that axe finds nothing, and that nothing overflows: dark on a phone, where more goes wrong.
 * The page has its width and its colours again afterwards.
 *
 * @param looks other views
 */
export async function expectAccessible(
  page: Page,
  looks: readonly View[] = views.slice(1),
): Promise<void> {
  const viewport = page.viewportSize();
  for (const { colorScheme, width } of looks) {
    await test.step(`${colorScheme}, ${width} px`, async () => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      // Otherwise it opens another page each time, and describes what it did not find as well: twice the time.
      const axe = new AxeBuilder({ page }).setLegacyMode().options({ resultTypes: ['violations'] });
      const { violations } = await axe.analyze();
      const found = violations.map(
        ({ id, nodes }) => `${id}: ${nodes.map((n) => n.html).join('; ')}`,
      );
      expect(found).toEqual([]);
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      expect(overflow, 'pixels beyond the right edge').toBeLessThanOrEqual(0);
    });
  }
  await page.emulateMedia({ colorScheme: null });
  if (viewport) await page.setViewportSize(viewport);
}

/** Details of a test that `npm test` leaves out; `npm run test:all` runs it too. */
export const full = { tag: '@full' };

/** A file as it is given to a file input. */
export function payload(name: string, buffer: Buffer, mimeType = 'image/png') {
  return { name, mimeType, buffer };
}

const goldens = path.join(root, 'lib/models/wan/goldens/tiny-wan22-ti2v');

/** A small real picture. */
export const picturePath = path.join(goldens, 'image.png');

/** The golden model as a diffusers folder. */
export const modelFolder = path.join(goldens, 'model');

/** Path of one of the adapters that come with the goldens. */
export function loraPath(name: string): string {
  return path.join(goldens, 'loras', `${name}.safetensors`);
}

/** Writes a LoRA of Wan2.1's 1.3B, which no listed model is. @returns its path, in the folder of the running test */
export function loraOfOtherBase(): string {
  const file = base.info().outputPath('wrong_base_1.3b.safetensors');
  mkdirSync(path.dirname(file), { recursive: true });
  const zeros = Array<number>(1536).fill(0);
  const bytes = safetensorsBytes({
    'blocks.0.attn1.to_q.lora_A.weight': f32([1, 1536], zeros),
    'blocks.0.attn1.to_q.lora_B.weight': f32([1536, 1], zeros),
  });
  writeFileSync(file, bytes);
  return file;
}

/**
 * Writes a LoRA of the tiny model that cannot be read, or whose `alpha` is an integer as musubi's converter writes it.
 *
 * @returns its path, in the folder of the running test
 */
export function oddLora(name: string): string {
  const file = base.info().outputPath(`${name}.safetensors`);
  mkdirSync(path.dirname(file), { recursive: true });
  const stem = 'lora_unet_blocks_0_self_attn_q';
  const [down, up] = [`${stem}.lora_down`, `${stem}.lora_up`];
  const good = { [`${down}.weight`]: f32([4, 64]), [`${up}.weight`]: f32([64, 4]) };
  const odd: Readonly<Record<string, Record<string, TestTensor>>> = {
    'factors-i8': {
      [`${down}.weight`]: { dtype: 'I8', shape: [4, 64], data: new Uint8Array(256) },
    },
    empty: { [`${up}.weight`]: f32([0]) },
    'scale-nan': { [`${down}.scale_weight`]: f32([], [Number.NaN]) },
    'alpha-i64': {
      [`${stem}.alpha`]: {
        dtype: 'I64',
        shape: [],
        data: new Uint8Array([4, 0, 0, 0, 0, 0, 0, 0]),
      },
    },
  };
  writeFileSync(file, safetensorsBytes({ ...good, ...odd[name] }));
  return file;
}

/** The bytes of {@link picturePath}. */
export function picture(): Buffer {
  return readFileSync(picturePath);
}

export { expect };
