import type { Completed } from '../../../lib/contract';
import { newPredictionId } from '../../../lib/predictions/run-input';
import { t } from '../../texts';
import '../../texts/en/files';
import { storeVideo } from '../result/player/keep-video';
import { loadData } from '../use-data';
import type { readSettings } from './files';
import { askedSampling } from './sampling';

type Settings = Awaited<ReturnType<typeof readSettings>>;

/**
 * Keeps a video of Kinora that was opened among the past videos. One that is there, or was just deleted, stays as it is.
 *
 * @returns its id; null for a copy that was shared
 * @throws KinoraError `STORAGE_FULL`, `VIDEO_UNREADABLE`
 */
export async function keepOpened(file: Blob, settings: Settings): Promise<string | null> {
  const { metadata, image, lastImage, framing } = settings;
  if (!metadata) return null;
  const { store } = (await loadData()).getRunner();
  const id = /^[0-9a-f]{32}$/.test(metadata.id) ? metadata.id : newPredictionId();
  if ((await store.get(id)) || (await store.restore([id])).length > 0) return id;
  const { parseParameters } = await import('../../../lib/contract/request');
  const { inspectVideo } = await import('../../../lib/video/inspect');
  const { withTags } = await import('../../../lib/video/metadata');
  const { model, profile, backend, created_at: at, parts, safety, licence, applied } = metadata;
  const { lora_files: loraFiles, prompt_optimization: promptOptimization } = metadata;
  const parameters = parseParameters(metadata);
  // What is stored tells nothing: its row does.
  const video = await withTags(file, {});
  const { width, height, frames, frameRate } = await inspectVideo(video);
  const end = lastImage && { name: t('files.endImage'), framing: lastImage.framing };
  const row: Completed = {
    id,
    model,
    profile,
    backend,
    parameters,
    options: {
      ...askedSampling(profile, applied),
      promptOptimizer: promptOptimization,
      framing,
      ...(end && { lastImage: end }),
    },
    createdAt: at,
    status: 'completed',
    completedAt: at,
    result: {
      videoFile: `${id}.mp4`,
      videoBytes: video.size,
      size: parameters.size,
      width,
      height,
      frames,
      frameRate,
      model,
      profile,
      backend,
      seed: parameters.seed,
      encoder: 'webcodecs',
      finishedEarly: false,
      // The file does not tell it.
      timings: { total: 0 },
      ...(applied && { applied }),
      ...(licence && { licence }),
      ...(loraFiles && { loraFiles }),
      ...(safety && { safety }),
      ...(promptOptimization && { promptOptimization }),
    },
    ...(parts && { parts }),
  };
  const loras = parameters.loras.map(({ path: name }) => ({ name, file: null }));
  const source = image && {
    image,
    imageName: 'start-image.jpg',
    lastImage: lastImage?.file,
    loras,
  };
  await storeVideo(store, row, video, source ?? null);
  return id;
}
