import type { Backend } from '../../gpu';
import type { RunStorage } from '../../pipeline/checkpoints';
import { RunControl } from '../../pipeline/control';
import type { VideoModel } from '../../pipeline/model';
import { imageToVideo } from '../../pipeline/run';

/** Files in memory. */
export function memoryStorage(): RunStorage {
  const saved = new Map<string, Blob>();
  return {
    read: async (name) => saved.get(name) ?? null,
    write: async (name, data) => void saved.set(name, data),
    remove: async (name) => void saved.delete(name),
  };
}

/** What the video starts from. */
export const image = {
  width: 64,
  height: 32,
  data: Float32Array.from({ length: 3 * 64 * 32 }, (_, i) => Math.sin(i / 500)),
};

/** Makes a video of four steps of a small model. @param pauseAt step behind which the run is paused */
export async function shortRun(
  backend: Backend,
  model: VideoModel,
  frames: number,
  storage: RunStorage,
  { pauseAt, resumes = false }: { pauseAt?: number; resumes?: boolean } = {},
) {
  const control = new RunControl();
  const made: Float32Array[] = [];
  const steps: number[] = [];
  const request = {
    image,
    prompt: 'a red fox',
    negativePrompt: 'blur',
    frames,
    seed: 3,
    scheduler: { kind: 'unipc' },
    steps: 4,
    guidanceScale: 3,
    flowShift: 5,
    decoder: 'full',
  } as const;
  await imageToVideo(backend, model, request, {
    control,
    onProgress: (event) => {
      if (event.type !== 'step') return;
      steps.push(event.step);
      if (event.step === pauseAt) control.pause();
    },
    onFrame: async ({ data }) => void made.push(data.slice()),
    saving: { storage, intervalSeconds: 0, ...(resumes && { continuation: 'resume' }) },
  });
  return { frames: made, steps };
}
