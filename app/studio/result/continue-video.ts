import { type Completed, KinoraError, nativeSizeOf } from '../../../lib/contract';
import { type ContinuationChanges, continuationOf } from '../../../lib/predictions/continuation';
import type { RunInput } from '../../../lib/predictions/run-input';
import { endOf } from '../../../lib/predictions/saved-runs';
import type { PredictionStore } from '../../../lib/predictions/store';
import { readVideo } from '../../../lib/predictions/videos';
import { loadModels } from '../../shared/use-models';
import { t } from '../../texts';
import '../../texts/en/result';

/**
 * The input of a run that continues a finished video from its end.
 *
 * @throws KinoraError `MODEL_NOT_INSTALLED`, `IMAGE_MISSING` where its adapters are not stored,
 *   `FILE_UNREADABLE` or `VIDEO_UNREADABLE`
 */
export async function openContinuation(
  store: PredictionStore,
  prediction: Completed,
  changes: Omit<ContinuationChanges, 'before'> & {
    /** By the latents of its end, or of its last frames where those are gone; else it goes on from the last picture. */
    readonly keepsMotion: boolean;
  },
): Promise<RunInput> {
  const [models, source] = await Promise.all([loadModels(), store.source(prediction.id)]);
  const model = models.find(({ manifest }) => manifest.id === prediction.model);
  if (!model?.ready) {
    throw new KinoraError(
      'MODEL_NOT_INSTALLED',
      t('result.modelGone', { name: model?.manifest.name ?? prediction.model }),
    );
  }
  if (!source) throw new KinoraError('IMAGE_MISSING');
  // The MP4 reader is large and rarely used, so it is loaded only here.
  const { continuationImage } = await import('../../../lib/video/frames');
  const { manifest } = model;
  const { profile, parameters } = prediction;
  const native = nativeSizeOf(manifest, manifest.profiles[profile], parameters.size);
  const video = await readVideo(prediction.result.videoFile);
  const before = changes.keepsMotion ? ((await endOf(prediction.id)) ?? video) : null;
  const image = await continuationImage(video, native);
  return continuationOf(prediction, source, image, { ...changes, before });
}
