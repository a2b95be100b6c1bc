import type { MemoryReport } from '../contract';
import type { Backend } from '../gpu';
import { measureChunkTokens } from '../models/wan22/chunk-size';
import type { Model } from '../models/wan22/model';
import { loadTokenizer } from '../models/wan22/tokenizer';
import { tokensPerFrame } from '../models/wan22/tokens';
import { latentFrames, planClips } from './clips';
import { Pace } from './eta';
import { MemoryFit } from './memory/fit';
import { MemoryPlanner } from './memory/plan';
import type { ImageToVideoHooks, ImageToVideoRequest, ImageToVideoResult } from './run-request';
import { Stages } from './run-stages';

export type {
  Frame,
  ImageToVideoHooks,
  ImageToVideoRequest,
  ImageToVideoResult,
} from './run-request';

/**
 * Image-to-video with Wan2.2-TI2V: text embeddings → image latent → denoising → frames; and for a
 * video longer than the model's longest clip, again from the last decoded frame (reference
 * `wan22-ti2v-5b.md` §4).
 *
 * Each stage frees its weights before the next one loads: the peak is the largest stage, not the sum.
 * A plan makes the stages fit the device's memory; if an allocation fails all the same, the run goes on
 * from its current step by a smaller one.
 *
 * @throws KinoraError `LATENTS_NOT_FINITE` naming the step, `CANCELLED`, `OUT_OF_MEMORY` where the
 * smallest plan does not fit, and what the files and the device throw; then nothing stays on the device
 */
export async function imageToVideo(
  backend: Backend,
  model: Model,
  request: ImageToVideoRequest,
  hooks: ImageToVideoHooks,
): Promise<ImageToVideoResult> {
  // What the user allows is kept to, also where a plan should be wrong.
  const { ceiling } = backend;
  if (typeof request.memoryBudget === 'number') backend.ceiling = request.memoryBudget;
  try {
    return await makeVideo(backend, model, request, hooks);
  } finally {
    backend.ceiling = ceiling;
  }
}

async function makeVideo(
  backend: Backend,
  model: Model,
  request: ImageToVideoRequest,
  hooks: ImageToVideoHooks,
): Promise<ImageToVideoResult> {
  const { control, onFrame } = hooks;
  const { config, manifest } = model;
  const clips = planClips(request.frames, manifest.maxClipFrames);
  const pace = new Pace(
    request.steps,
    clips.length,
    Math.min(request.frames, manifest.maxClipFrames),
    request.guidanceScale > 1 ? 2 : 1,
  );
  const prompts = await tokenise(model, request);
  const memory = await fitMemory(backend, model, request, hooks, prompts);
  const run = new Stages(backend, model, request, hooks, pace, clips.length, memory);

  const texts = await run.encodeText(prompts);
  let start = request.image;
  let framesDone = 0;
  for (const [clip, { frames, dropFirst }] of clips.entries()) {
    const held = await run.encodeImage(clip, start); // [C, 1, h, w]
    const size = {
      frames: latentFrames(frames, config.vae.scale_factor_temporal),
      height: start.height / config.vae.scale_factor_spatial,
      width: start.width / config.vae.scale_factor_spatial,
    };
    const latents = await run.denoise(clip, size, held, texts); // [C, F, h, w]
    let dropping = dropFirst;
    for await (const frame of run.decode(clip, size, latents)) {
      start = frame;
      if (dropping) {
        // It repeats the last frame of the clip before, from which this clip started.
        dropping = false;
        continue;
      }
      await onFrame(frame);
      framesDone += 1;
      const { secondsRemaining } = run;
      const { frames: framesTotal } = request;
      hooks.onProgress({
        type: 'frame',
        frame: framesDone,
        frames: framesTotal,
        secondsRemaining,
      });
    }
    if (control.finishing) break;
  }
  // Who asks when the last step is done gets the whole video all the same.
  const finishedEarly = run.cutShort || framesDone < request.frames;
  return { frames: framesDone, finishedEarly, memory: memory.report };
}

/** Token ids of the prompt, and with guidance of the negative one. */
async function tokenise(model: Model, request: ImageToVideoRequest): Promise<number[][]> {
  const { encodePrompt } = await loadTokenizer(model.folder);
  const guided = request.guidanceScale > 1;
  return (guided ? [request.prompt, request.negativePrompt] : [request.prompt]).map(encodePrompt);
}

/** Plans the memory for the longest clip. */
async function fitMemory(
  backend: Backend,
  model: Model,
  request: ImageToVideoRequest,
  hooks: ImageToVideoHooks,
  prompts: readonly (readonly number[])[],
): Promise<MemoryFit> {
  const { config, manifest } = model;
  const { width, height } = request.image;
  const { scale_factor_spatial: scale, scale_factor_temporal: stride } = config.vae;
  const frames = Math.min(request.frames, manifest.maxClipFrames);
  const size = {
    frames: latentFrames(frames, stride),
    height: height / scale,
    width: width / scale,
  };
  const tokens = size.frames * tokensPerFrame(config.transformer, size);
  const chunkTokens = await measureChunkTokens(backend, config.transformer, tokens);
  await backend.trim();
  const planner = await MemoryPlanner.create(config, model.precision, {
    native: { width, height, frames },
    chunkTokens,
    largestBuffer: backend.maxBufferBytes,
    promptTokens: prompts.map(({ length }) => length),
    ...(request.lora ? { lora: request.lora } : {}),
  });
  const onPlan = (memory: MemoryReport) => hooks.onProgress({ type: 'plan', memory });
  return MemoryFit.create(backend, planner, request.memoryBudget, onPlan);
}
