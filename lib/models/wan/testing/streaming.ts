/** Checks of streamed blocks that hold on every backend; run in Node and in Chromium. */
import { describe, expect, test } from 'vitest';
import type { Precision } from '../../../contract';
import { type Backend, CountingBackend, toBF16 } from '../../../gpu';
import { DenoiseInterrupted, type DenoiseState } from '../../../pipeline/denoise';
import { allResident, type Residency } from '../../../pipeline/memory/memory-plan';
import type { Checkpoint } from '../../../weights';
import type { LoraBranch, LoraBranches } from '../../layers/lora';
import type { TransformerConfig } from '../config-schemas';
import { usualChoice } from '../model-memory';
import { planDenoising, Transformer } from '../transformer';
import { deepened } from './deep';
import { denoiseTokens, perFrame, type TokenDenoising, tokenRequest, values } from './denoise';

const size = { frames: 3, height: 2, width: 4 };

const twoSets: Residency = { residentBlocks: 0, bufferSets: 2 };

export interface StreamingSetup {
  readonly backend: () => Backend;
  readonly checkpoint: () => Checkpoint;
  readonly config: () => TransformerConfig;
  /**
   * Whether kernels take seconds to compile: then only what depends on the device is run, in one variant of
   * the graphs, with guidance and a LoRA, and with few blocks and steps.
   */
  readonly slow?: boolean;
}

/** Registers the tests. */
export function streamingTests(name: string, setup: StreamingSetup): void {
  const [layers, steps] = setup.slow ? [4, 2] : [7, 4];
  const residencies: [string, Residency][] = [
    ['half of the blocks streamed', { residentBlocks: Math.floor(layers / 2), bufferSets: 2 }],
    ['all streamed in three sets', { residentBlocks: 0, bufferSets: 3 }],
  ];
  const deepConfig = () => ({ ...setup.config(), num_layers: layers });

  const request = (guidance: number, more: Partial<TokenDenoising> = {}) =>
    tokenRequest(setup.config(), steps, guidance, more);

  /** A LoRA on some linears of some blocks, of two types and two ranks, and a changed weight. */
  function lora(): LoraBranches {
    const d = setup.config().num_attention_heads * setup.config().attention_head_dim;
    const branch = (stream: number, rank = 4) => ({
      rank,
      down: values(stream, rank * d).map((value) => value / 10),
      up: values(stream + 1, rank * d),
    });
    const narrow = ({ rank, down, up }: ReturnType<typeof branch>) => {
      return { rank, down: toBF16(down), up: toBF16(up) };
    };
    return {
      branches: new Map<string, LoraBranch>([
        ['blocks.1.attn1.to_q', branch(20)],
        ['blocks.2.attn1.to_q', narrow(branch(22))],
        ['blocks.3.attn1.to_q', narrow(branch(23, 8))],
        [`blocks.${layers - 1}.attn2.to_out.0`, branch(24)],
      ]),
      deltas: new Map([['blocks.3.attn1.to_v.weight', values(26, d * d).map((v) => v / 50)]]),
    };
  }

  async function run(
    residency: Residency,
    denoising: TokenDenoising,
    options: {
      precision?: Precision;
      lora?: LoraBranches;
      onRead?: (names: readonly string[]) => void;
    } = {},
    backend = setup.backend(),
  ): Promise<Float32Array> {
    const { precision = 'int8', lora: adapters, onRead } = options;
    const reading = { precision, ...(adapters ? { lora: adapters } : {}) };
    const model = await Transformer.load(
      backend,
      deepened(setup.checkpoint(), layers, onRead),
      deepConfig(),
      reading,
      residency,
    );
    try {
      return await denoiseTokens(backend, model, denoising);
    } finally {
      model.dispose();
    }
  }

  /** What the loop gives with all blocks resident; run once for all tests. */
  const wholes = new Map<string, Promise<Float32Array>>();
  function whole(guidance: number, options: Parameters<typeof run>[2] = {}) {
    const key = JSON.stringify([guidance, options.precision, options.lora !== undefined]);
    const known = wholes.get(key) ?? run(allResident, request(guidance), options);
    wholes.set(key, known);
    return known;
  }
  /** The variant that the single tests run. */
  const usual = () => (setup.slow ? { lora: lora() } : {});

  describe(`streamed blocks on ${name}`, () => {
    const planned = setup.slow
      ? [twoSets]
      : [allResident, twoSets, ...residencies.map(([, each]) => each)];
    test.each(planned)('the peak is what was planned: %o', async (residency) => {
      const backend = setup.backend();
      await backend.releaseSessions();
      expect(backend.counters().liveBytes).toBe(0);
      const adapters = lora();
      const planner = await planDenoising(deepConfig(), size, perFrame, {
        precision: 'int8',
        promptTokens: [5, 3],
        lora: adapters,
      });
      backend.resetPeaks();
      await run(residency, request(5), { lora: adapters });
      const bytes = planner.bytes(residency);
      expect(backend.peakBytes).toBeLessThanOrEqual(bytes.peak);
      const counting = new CountingBackend();
      await run(residency, request(5), { lora: adapters }, counting);
      expect(counting.peakBytes).toBeLessThanOrEqual(bytes.peak);
      expect(counting.counters().categories.weights?.peak).toBe(bytes.weights);
    });

    test.skipIf(setup.slow).each(planned)(
      'kernels of our own take exactly what was planned, factors in bf16 too: %o',
      async (residency) => {
        const options = { precision: 'int8', lora: lora(), kernels: usualChoice('exact') } as const;
        const planner = await planDenoising(deepConfig(), size, perFrame, {
          ...options,
          promptTokens: [5, 3],
        });
        const counting = new CountingBackend(options.kernels);
        await run(residency, request(5, { saves: true }), options, counting);
        expect(counting.peakBytes).toBe(planner.bytes(residency).peak);
      },
    );

    describe.skipIf(setup.slow).each([1, 5])('guidance %i', (guidance) => {
      const variants: { precision?: Precision; lora?: boolean }[] = [
        {},
        { precision: 'int4' },
        { lora: true },
      ];

      test.each(residencies)('%s give the same latents bit for bit', async (_, residency) => {
        for (const { lora: adapted, ...precision } of variants) {
          const options = { ...precision, ...(adapted ? { lora: lora() } : {}) };
          const expected = await whole(guidance, options);
          expect(expected.every(Number.isFinite)).toBe(true);
          expect(await run(residency, request(guidance), options)).toEqual(expected);
        }
      });
    });

    test('all streamed in two sets: one read of each block per step, no allocations, the same bits', async () => {
      const groups: string[] = [];
      const counts: number[] = [];
      const reads: number[] = [];
      const onRead = (names: readonly string[]) => {
        expect(new Set(names.map((each) => each.split('.').slice(0, 2).join('.'))).size).toBe(1);
        groups.push(names[0]?.split('.')[1] ?? '');
      };
      const denoising = request(5, {
        afterStep: () => {
          counts.push(setup.backend().counters().allocations);
          reads.push(groups.length);
          return false;
        },
      });
      const around = (names: readonly string[]) => names[0]?.startsWith('blocks.') && onRead(names);
      const result = await run(twoSets, denoising, { ...usual(), onRead: around });
      expect(result).toEqual(await whole(5, usual()));
      expect(counts).toEqual(Array(steps).fill(counts[0]));
      const perStep = reads.slice(1).map((count, i) => count - (reads[i] ?? 0));
      expect(perStep).toEqual(Array(steps - 1).fill(layers));
      const pass = Array.from({ length: layers }, (_, i) => i).join('');
      expect(groups.slice(0, 2 * layers).join('')).toBe(pass + pass);
    });

    test.skipIf(setup.slow).each([1, 3])(
      'memory that runs out in step %i: a smaller plan goes on to the same bits',
      async (at) => {
        const backend = setup.backend();
        const expected = await whole(5, usual());
        const done: number[] = [];
        const broken = run(
          allResident,
          request(5, {
            afterStep: (step) => {
              done.push(step);
              // The next allocation is one too many; the loop makes none, so one is made for it.
              if (step === at - 1) throwOnNext(backend);
              return false;
            },
          }),
          usual(),
        );
        const interrupted = await broken.catch((error: unknown) => error);
        if (!(interrupted instanceof DenoiseInterrupted)) throw interrupted;
        expect(interrupted.cause.code).toBe('OUT_OF_MEMORY');
        expect(interrupted.state?.step).toBe(at);
        expect(interrupted.liveBytes).toBeGreaterThan(0);
        backend.ceiling = Number.POSITIVE_INFINITY;
        const resume: DenoiseState | null = interrupted.state;
        const afterStep = (step: number) => {
          done.push(step);
          return false;
        };
        const rest = request(5, { resume, afterStep });
        expect(await run(twoSets, rest, usual())).toEqual(expected);
        expect(done).toEqual(Array.from({ length: steps }, (_, i) => i));
      },
    );
  });
}

/** Lets the ledger's ceiling strike in the middle of the next step. */
function throwOnNext(backend: Backend): void {
  backend.ceiling = backend.counters().liveBytes;
  const { run } = backend;
  let left = 12;
  backend.run = async (graph, inputs, outputs) => {
    left -= 1;
    if (left === 0) {
      backend.run = run;
      backend.tensor('float32', [1024], 'activations').dispose();
    }
    return run.call(backend, graph, inputs, outputs);
  };
}
