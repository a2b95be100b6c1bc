import { z } from 'zod';
import { KinoraError } from '../../../contract';
import type { Backend } from '../../../gpu';
import type { LatentSize } from '../../../pipeline/latents';
import { type Checkpoint, type ModelFolder, openCheckpoint, subfolder } from '../../../weights';
import type { Precision } from '../../layers/linear';
import { openFile } from '../../wan/parity';
import { type ModelConfig, readModelConfig } from '../config';

const goldenSchema = z.looseObject({
  prompt: z.string(),
  negative_prompt: z.string().default(''),
  num_inference_steps: z.int().positive(),
  guidance_scale: z.number(),
  flow_shift: z.number().positive(),
  dit_timestep: z.number().optional(),
  tokenizer_prompts: z.array(z.string()).default([]),
  tokenizer_ids: z.array(z.array(z.int())).default([]),
  cleaned: z.array(z.string()).default([]),
});

/** A folder laid out like the goldens, opened. Every size comes from the files. */
export interface Golden {
  readonly folder: ModelFolder;
  readonly model: ModelFolder;
  readonly config: ModelConfig;
  readonly settings: z.output<typeof goldenSchema>;
  readonly tensors: Checkpoint;
  /** Opens the weights of a component, by diffusers' names. */
  readonly components: Readonly<
    Record<'transformer' | 'textEncoder' | 'vae', () => Promise<Checkpoint>>
  >;
  /** Size of `final_latents` or of `dit_input`, whichever is there. */
  readonly size: LatentSize | null;
}

/** Opens a folder of reference tensors and the model they were made with. */
export async function openGolden(folder: ModelFolder): Promise<Golden> {
  const model = subfolder(folder, 'model');
  const tensors = await openFile(folder, 'golden.safetensors');
  const sized = ['final_latents', 'dit_input', 'noise'].find((name) => tensors.has(name));
  const [, , frames = 0, height = 0, width = 0] = sized ? tensors.shape(sized) : [];
  return {
    folder,
    model,
    config: await readModelConfig(model),
    settings: await readSettings(folder),
    tensors,
    components: {
      transformer: () => openCheckpoint(model, 'transformer'),
      textEncoder: () => openCheckpoint(model, 'text_encoder'),
      vae: () => openCheckpoint(model, 'vae'),
    },
    size: sized ? { frames, height, width } : null,
  };
}

async function readSettings(folder: ModelFolder) {
  const parsed = goldenSchema.safeParse(await folder.json('golden.json'));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new KinoraError(
    'MODEL_FILE_INVALID',
    `golden.json is not valid at ${issue?.path.join('.') || 'its root'}: ${issue?.message}.`,
  );
}

/** What every stage is given. */
export interface ParityContext {
  readonly golden: Golden;
  readonly backend: Backend;
  /** Of the blocks' weights. */
  readonly precision: Precision;
  /** For one stage alone. */
  readonly stageTolerance: number;
  /** For the whole loop and the video. */
  readonly loopTolerance: number;
  /** For the loop with key frames, and its video. */
  readonly keyFrameTolerance: number;
  /** For the video from the files in `formats/`. */
  readonly formatsVideoTolerance: number;
  /** Names of the files in `loras/`. */
  readonly loraFiles: readonly string[];
}
