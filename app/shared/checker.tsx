import { hasSafetyChecker, type ModelEntry } from '../../lib/contract';
import { useLibrary } from '../library';
import { t } from '../texts';
import { later } from './later';

const PartDownload = later(async () => (await import('./part-download')).PartDownload);

/** What this browser has of the safety checker, which serves all models wherever it is stored. */
export interface CheckerState {
  /** `unknown` until the library is loaded. */
  readonly status: 'unknown' | 'ready' | 'absent';
  /** The model that it is downloaded for; null where none can have it. */
  readonly target: ModelEntry | null;
}

/**
 * @param modelId the model that needs the checker. It becomes a part of it where that is all that is missing,
 *   else of the bundled model.
 */
export function findChecker(models: readonly ModelEntry[], modelId: string): CheckerState {
  const lacksNothingElse = ({ manifest, ready, parts }: ModelEntry) =>
    manifest.id === modelId &&
    ready &&
    parts.every(({ component, status }) => component === 'safety_checker' || status === 'complete');
  const target =
    models.find(lacksNothingElse) ?? models.find(({ origin }) => origin === 'bundled') ?? null;
  return { status: models.some(hasSafetyChecker) ? 'ready' : 'absent', target };
}

/** The safety checker of this browser; starts the library's worker. */
export function useChecker(modelId: string): CheckerState {
  const library = useLibrary();
  if (library.status !== 'ready') return { status: 'unknown', target: null };
  return findChecker(library.snapshot.models, modelId);
}

/** Of Marqo/nsfw-image-detection-384: tensors, header and configuration. */
const checkerBytes = 22_400_000;

/** The download of the checker; nothing where it is there. */
export function CheckerDownload(props: {
  checker: CheckerState;
  then?: string;
  onReady?: () => void;
}) {
  const { checker, ...rest } = props;
  const { status, target } = checker;
  if (status !== 'absent' || !target) return null;
  return (
    <PartDownload
      entry={target}
      component="safety_checker"
      name={t('shared.checkerName')}
      bytes={checkerBytes}
      {...rest}
    >
      {t('shared.checkerLocal')}
    </PartDownload>
  );
}
