/** The golden classifier, for tests that run in Node. */
import { fileURLToPath } from 'node:url';
import { readPng } from '../../parity/golden';
import type { RgbaImage } from '../../pipeline/vision/squares';
import { diskFolder } from '../../weights/testing/files';
import { openSafetyChecker, type SafetyChecker } from '../checker';

const root = fileURLToPath(new URL('../goldens/', import.meta.url));

export const goldenFolder = diskFolder(root);
export const goldenCheckerFolder = diskFolder(`${root}timm`);
export const goldenIdentity = { model: 'tiny-vit', sha256: 'a'.repeat(64) };

/** `golden.json`, as far as tests read it. */
interface Golden {
  readonly images: Readonly<Record<string, { readonly score: number }>>;
  readonly sampled_frames: Readonly<Record<string, readonly number[]>>;
  readonly sampled_count: Readonly<Record<string, number>>;
  readonly aggregate: readonly {
    readonly scores: readonly number[];
    readonly score: number;
    readonly nsfw: boolean;
  }[];
}

export const golden = (await goldenFolder.json('golden.json')) as Golden;

export function openGoldenChecker(folder = goldenCheckerFolder): Promise<SafetyChecker> {
  return openSafetyChecker(folder, goldenIdentity);
}

export async function goldenImage(name: 'wide' | 'tall' | 'small'): Promise<RgbaImage> {
  return readPng(goldenFolder, `images/${name}.png`);
}
