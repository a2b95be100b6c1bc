/** @module-tag full */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type CheckpointInfo,
  type Continuation,
  KinoraError,
  type ProgressEvent,
  sha256,
} from '../../contract';
import { type Backend, handleMessages } from '../../gpu';
import type { RunStorage } from '../../pipeline/checkpoints';
import { RunControl } from '../../pipeline/control';
import type { ClipToDecode } from '../../pipeline/model';
import { type ImageToVideoRequest, imageToVideo } from '../../pipeline/run';
import { samplers } from '../../pipeline/schedulers';
import { heun } from '../../pipeline/schedulers/testing/heun';
import { openGolden } from '../../weights/testing/files';
import { combineLoras, type LoraBranches, parseLora } from '../layers/lora';
import { loraArchitectureOf } from './lora';
import { WanModel } from './model';
import type { WanParts } from './parts';
import { nodeBackend, openTiny } from './testing/model';
import { smoothImage, videoDefaults } from './testing/video';

// All that a sampler needs besides its file.
samplers.heun = heun;

const backend = nodeBackend();
/** Clips of nine frames. */
let parts: WanParts;
let lora: LoraBranches;
beforeAll(async () => {
  const tiny = await openTiny();
  parts = { ...tiny, manifest: { ...tiny.manifest, maxClipFrames: 9 } };
  const architecture = loraArchitectureOf(tiny.config);
  const file = await openGolden('loras/b_lightx2v_diff_b.safetensors');
  lora = combineLoras([{ lora: await parseLora(file, architecture, 'b'), scale: 1 }], architecture);
});
afterAll(() => backend.dispose());
afterEach(() => expect(backend.counters().liveBytes).toBe(0));

/** Files in memory; a copy is what a run leaves that ends at this moment. */
class MemoryStorage implements RunStorage {
  /** What the next write throws. */
  error: Error | null = null;
  /** Turns of the event loop that a file takes. */
  turns = 0;

  constructor(readonly files = new Map<string, Blob>()) {}

  copy(): MemoryStorage {
    return new MemoryStorage(new Map(this.files));
  }

  async read(name: string): Promise<Blob | null> {
    return this.files.get(name) ?? null;
  }

  async write(name: string, data: Blob): Promise<void> {
    if (this.error) throw this.error;
    for (let turn = 0; turn < this.turns; turn++) await handleMessages();
    this.files.set(name, data);
  }

  async remove(name: string): Promise<void> {
    this.files.delete(name);
  }

  /** Changes a file, or all of them. */
  async change(how: (file: Blob) => Promise<Blob> | Blob, names = [...this.files.keys()]) {
    for (const name of names) {
      const file = this.files.get(name);
      if (file) this.files.set(name, await how(file));
    }
  }
}

/** Notes the latents that it decodes. */
class Recording extends WanModel {
  readonly decoded: Float32Array[] = [];

  override async *decode(on: Backend, clip: ClipToDecode) {
    this.decoded.push(clip.latents);
    yield* super.decode(on, clip);
  }
}

/** A file with another byte in its last tensor. */
async function damaged(file: Blob): Promise<Blob> {
  const end = new Uint8Array(await file.slice(-1).arrayBuffer());
  return new Blob([file.slice(0, -1), end.map((byte) => byte ^ 1)]);
}

/** A file as another version writes it. */
async function ofOtherVersion(file: Blob): Promise<Blob> {
  const size = new DataView(await file.slice(4, 8).arrayBuffer()).getUint32(0);
  const header = (await file.slice(72, 72 + size).text()).replace(/"version":\d+/, '"version":0');
  const bytes = new TextEncoder().encode(header);
  return new Blob([file.slice(0, 8), await sha256(bytes), bytes, file.slice(72 + size)]);
}

type Watch = (event: ProgressEvent, control: RunControl) => void;

const base = { ...videoDefaults, image: smoothImage({ width: 64, height: 32 }), steps: 4 };

async function make(
  request: Partial<ImageToVideoRequest> & { readonly lora?: LoraBranches },
  storage: RunStorage,
  continuation?: Continuation,
  watch: Watch = () => undefined,
  checkpoint?: CheckpointInfo,
) {
  const { lora: branches, ...rest } = request;
  const model = new Recording(parts, branches && new Map([['transformer', branches]]));
  const control = new RunControl();
  const events: ProgressEvent[] = [];
  const frames: Float32Array[] = [];
  const onProgress = (event: ProgressEvent) => {
    events.push(event);
    watch(event, control);
  };
  const result = await imageToVideo(
    backend,
    model,
    { ...base, ...rest },
    {
      control,
      onProgress,
      onFrame: async ({ data }) => void frames.push(data.slice()),
      saving: {
        storage,
        intervalSeconds: 0,
        ...(continuation && { continuation }),
        ...(checkpoint && { checkpoint }),
      },
    },
  );
  const steps = events.flatMap((event) =>
    event.type === 'step' ? [`${event.clip}:${event.step}`] : [],
  );
  const problems = events.filter((event) => event.type === 'checkpoint-problem');
  const { decoded: latents } = model;
  return { ...result, latents, frames, events, steps, problems };
}
type Made = Awaited<ReturnType<typeof make>>;

/** Without a matcher, which would take minutes to show how so many numbers differ. */
const sameBits = (a: readonly Float32Array[], b: readonly Float32Array[]) =>
  a.length === b.length &&
  a.every((values, i) => values.every((value, at) => Object.is(value, b[i]?.[at])));

function expectSame(made: Pick<Made, 'latents' | 'frames'>, whole: Made): void {
  expect(sameBits(made.latents, whole.latents)).toBe(true);
  expect(sameBits(made.frames, whole.frames)).toBe(true);
}

/** Pauses a run at a step, or at the next one from which it can go on. */
async function pausedAt(request: Parameters<typeof make>[0], at: string): Promise<MemoryStorage> {
  const storage = new MemoryStorage();
  const running = make(request, storage, undefined, (event, control) => {
    if (event.type === 'step' && `${event.clip}:${event.step}` === at) control.pause();
  });
  await expect(running).rejects.toMatchObject({ code: 'PAUSED' });
  return storage;
}

type Configuration = Partial<ImageToVideoRequest> & {
  readonly adapter?: boolean;
  readonly keepsMotion?: boolean;
};

function keepMotion(keepsMotion: boolean): void {
  parts = { ...parts, manifest: { ...parts.manifest, continuation: { latents: 2, keepsMotion } } };
}

const settings = { ratios: [0.99, 0.99], threshold: 0.06, mostSkips: 2, computedShare: 0.4 };
const fewSteps: Configuration['scheduler'] = { kind: 'few-step', timesteps: [1000, 757, 522] };

describe('a run that is paused and resumed gives the same bits', () => {
  test.each<[string, Configuration, string, string]>([
    ['UniPC with guidance', { guidanceScale: 5 }, '0:2', '0:3'],
    ['Heun, with two evaluations a step', { scheduler: { kind: 'heun' } }, '0:2', '0:3'],
    ['few steps with fresh noise', { scheduler: fewSteps, steps: 3, adapter: true }, '0:1', '0:2'],
    // Steps 3 and 4 reuse what lies on the device: only before the fifth can it stop.
    [
      'MagCache',
      { guidanceScale: 3, cache: { kind: 'magcache', settings }, steps: 6 },
      '0:2',
      '0:5',
    ],
    ['the motion kept, in the second clip', { frames: 17, keepsMotion: true }, '1:2', '1:3'],
    ['a loop, in its second clip', { frames: 17, loop: true, guidanceScale: 2 }, '1:2', '1:3'],
    [
      'a picture in the second clip, which is a loop',
      {
        frames: 17,
        lastImage: base.image,
        lastImageFrame: 11,
        loop: true,
      },
      '1:2',
      '1:3',
    ],
    [
      'guidance, and a given last image',
      { guidanceScale: 3, lastImage: base.image, steps: 8 },
      '0:4',
      '0:5',
    ],
  ])('%s', async (_, { adapter, keepsMotion = false, ...sampling }, at, next) => {
    keepMotion(keepsMotion);
    const request = { ...sampling, ...(adapter && { lora }) };
    const whole = await make(request, new MemoryStorage());
    const storage = await pausedAt(request, at);
    const made = await make(request, storage, 'resume');
    expectSame(made, whole);
    expect(made.steps[0]).toBe(next);
    expect(made.problems).toEqual([]);
    expect([whole.resumes, made.resumes]).toEqual([0, 1]);
    const phases = made.events.flatMap((event) => (event.type === 'phase' ? [event.phase] : []));
    expect(phases).not.toContain('text');
  });
});

test('a run that ends at any moment goes on from what was written by then', async () => {
  const request = { frames: 17, guidanceScale: 2 };
  const storage = new MemoryStorage();
  storage.turns = 200;
  const left: MemoryStorage[] = [];
  const moments = ['0:1', 'frame 3', '1:3', 'frame 12'];
  const whole = await make(request, storage, undefined, (event) => {
    const moment =
      event.type === 'step' ? `${event.clip}:${event.step}` : `frame ${frameOf(event)}`;
    if (moments.includes(moment)) left.push(storage.copy());
  });
  expect(left).toHaveLength(moments.length);
  const next: unknown[] = [];
  for (const files of left) {
    const made = await make(request, files, 'resume');
    expectSame(made, whole);
    next.push(made.steps[0]);
  }
  // No finished step is computed again, however long its file takes.
  expect(next).toEqual(['0:1', '1:1', '1:3', undefined]);
});
const frameOf = (event: ProgressEvent) => (event.type === 'frame' ? event.frame : null);

describe('what cannot be used', () => {
  /** After step 1 in `state-a`, after step 2 in `state-b`. */
  let storage: MemoryStorage;
  let whole: Made;
  beforeAll(async () => {
    whole = await make({}, new MemoryStorage());
    storage = await pausedAt({}, '0:2');
  });

  test.each([
    ['state-a', '0:3'],
    ['state-b', '0:2'],
  ])('%s, which is damaged: the other one is used, from step %s on', async (name, next) => {
    const files = storage.copy();
    await files.change(damaged, [name]);
    const made = await make({}, files, 'resume');
    expectSame(made, whole);
    expect([made.steps[0], made.problems]).toEqual([next, []]);
  });

  test.each<[string, RegExp, (file: Blob) => Promise<Blob> | Blob]>([
    ['damaged', /damaged/, damaged],
    ['cut in its header', /damaged/, (file) => file.slice(0, 60)],
    ['of another version', /another version/, ofOtherVersion],
  ])('a state that is %s: the run starts anew and says so', async (_, why, change) => {
    const files = storage.copy();
    await files.change(change);
    await expectAnew({}, files, why);
  });

  test('a state of other settings, of another image, of other weights, and one that is gone', async () => {
    const mismatch = 'CHECKPOINT_MISMATCH';
    await expectAnew({ prompt: 'a red fox' }, storage, /other settings/, mismatch);
    const image = { ...base.image, data: base.image.data.map((value) => -value) };
    await expectAnew({ image }, storage, /another image/, mismatch);
    // As a run that was saved with a cache that is not there any more.
    const cached = await pausedAt({ cache: { kind: 'magcache', settings } }, '0:2');
    await expectAnew({}, cached, /other settings/, mismatch);
    await expectAnew({}, new MemoryStorage(), /not in this browser/);
    const own = parts;
    parts = { ...own, fingerprint: 'other weights' };
    await expectAnew({}, storage, /another model or other adapters/, mismatch);
    parts = own;
  });

  test('states that are gone while other files are there: the run says so', async () => {
    const goesOn = async (at: CheckpointInfo, files: MemoryStorage, frames: number) => {
      const { steps, problems, events } = await make({ frames }, files, 'resume', undefined, at);
      const [saved] = events.flatMap((event) =>
        event.type === 'checkpoint' ? [event.checkpoint] : [],
      );
      return { first: steps[0], problems, saved };
    };
    const without = (all: MemoryStorage, ...names: string[]) => {
      const files = all.copy();
      for (const name of names) files.files.delete(name);
      return files;
    };
    const gone = (next: string) => [
      {
        problem: 'restarted',
        sentence: `The saved state of this generation is not in this browser any more. ${next}`,
      },
    ];
    const at = { clip: 0, clips: 1, step: 2, steps: 4 };
    const whole = await goesOn(at, storage.copy(), 9);
    expect(whole).toMatchObject({ first: '0:3', problems: [], saved: at });
    const anew = await goesOn(at, without(storage, 'state-a', 'state-b'), 9);
    expect(anew).toMatchObject({ first: '0:1', problems: gone('It starts anew.') });
    const left = 'It goes on from what is left of it.';
    const older = await goesOn(at, without(storage, 'state-b'), 9);
    const one = { ...at, step: 1 };
    expect(older).toMatchObject({ first: '0:2', problems: gone(left), saved: one });

    // Of two clips the first is finished, and is not made again.
    const second = { clip: 1, clips: 2, step: 2, steps: 4 };
    const files = without(await pausedAt({ frames: 17 }, '1:2'), 'state-a', 'state-b');
    const clip = await goesOn(second, files, 17);
    const end = { clip: 0, clips: 2, step: 4, steps: 4 };
    expect(clip).toMatchObject({ first: '1:1', problems: gone(left), saved: end });
  });

  async function expectAnew(
    request: Partial<ImageToVideoRequest>,
    files: MemoryStorage,
    why: RegExp,
    code = 'CHECKPOINT_INVALID',
  ): Promise<void> {
    const message = expect.stringMatching(why);
    const finishing = make(request, files.copy(), 'finish');
    await expect(finishing).rejects.toMatchObject({ code, message });
    const made = await make(request, files.copy(), 'resume');
    expect(made.steps[0]).toBe('0:1');
    expect(made.problems).toMatchObject([{ problem: 'restarted', sentence: message }]);
    expect(made.resumes).toBe(0);
    if (Object.keys(request).length === 0) expectSame(made, whole);
  }
});

test('finishing decodes what a run had predicted; what it keeps can be decoded again', async () => {
  const storage = await pausedAt({ frames: 17 }, '1:2');
  const early = await make({ frames: 17 }, storage, 'finish');
  expect(early).toMatchObject({ finishedEarly: true, steps: [] });
  expect(early.frames).toHaveLength(17);
  expect(early.latents).toHaveLength(2);
  const again = await make({ frames: 17 }, storage, 'refine');
  expectSame(again, early);
  expect(again.finishedEarly).toBe(true);
  const none = make({ frames: 17 }, new MemoryStorage(), 'refine');
  await expect(none).rejects.toMatchObject({ code: 'CHECKPOINT_INVALID' });
});

test('where the motion is kept, a clip that was not begun leaves the finished one to be decoded', async () => {
  keepMotion(true);
  const storage = await pausedAt({ frames: 17 }, '0:4');
  const early = await make({ frames: 17 }, storage, 'finish');
  expect(early).toMatchObject({ finishedEarly: true, frames: { length: 9 } });
  // As a picture it would be another clip.
  keepMotion(false);
  const other = make({ frames: 17 }, storage, 'finish');
  await expect(other).rejects.toMatchObject({ code: 'CHECKPOINT_MISMATCH' });
});

test('a full disk: the run goes on unsaved, says so once, and leaves room', async () => {
  const storage = new MemoryStorage();
  const whole = await make({}, new MemoryStorage());
  const made = await make({}, storage, undefined, (event) => {
    if (event.type === 'step' && event.step === 2) storage.error = new KinoraError('STORAGE_FULL');
  });
  expectSame(made, whole);
  const sentence = expect.stringContaining('the storage is full');
  expect(made.problems).toMatchObject([{ problem: 'unsaved', sentence }]);
  expect([...storage.files.keys()]).toEqual([]);
});
