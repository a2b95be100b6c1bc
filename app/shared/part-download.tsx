import type { ReactNode } from 'react';
import {
  type ComponentId,
  entriesOf,
  formatBytes,
  type LibraryEntry,
  type ToolManifest,
} from '../../lib/contract';
import { getLibrary } from '../library';
import { Licence } from '../models/licence';
import { fractionOf } from '../models/model-view';
import { t } from '../texts';
import { Button } from './button';
import { Problem } from './messages';
import { useTask } from './task';
import { withTerms } from './terms-store';

/** A button that downloads one part of a model or tool, with its size, licence and progress. */
export function PartDownload(props: {
  entry: LibraryEntry<ToolManifest>;
  component: ComponentId;
  /** Of the part, as in "Download the larger checker". */
  name: string;
  /** Its size, about, until the hub has told it. */
  bytes?: number;
  /** What happens after the download, as the end of the button's label. */
  then?: string;
  onReady?: () => void;
  /** After the licence. */
  children?: ReactNode;
}) {
  const { entry, component, name, then = '', onReady, children } = props;
  const downloading = useTask();
  const cancelling = useTask();
  const part = entry.parts.find((one) => one.component === component);
  const source = entry.manifest.sources.find((one) => one.component === component);
  if (!part || !source) return null;
  const { id, licence } = entry.manifest;
  const download = () =>
    downloading.run(async () => {
      if (await downloadPart(entry, component)) onReady?.();
    });
  const cancel = () => cancelling.run(() => getLibrary().call((api) => api.cancel(id, component)));
  const listed = source.files.reduce((sum, file) => sum + (file.bytes ?? 0), 0);
  const bytes = part.bytesTotal ?? (listed || props.bytes);
  const fraction = fractionOf(part.bytesDone, part.bytesTotal);
  const moving = downloading.busy || part.status === 'downloading' || part.status === 'verifying';
  const error = downloading.problem ?? cancelling.problem;
  const problem = error ?? (moving ? null : part.error);
  return (
    <div className="offer stack">
      {moving && (
        <progress
          aria-label={t('shared.downloading', { name })}
          value={fraction ?? undefined}
          max={1}
        />
      )}
      {problem && <Problem error={problem} />}
      <div className="actions small">
        {moving ? (
          <Button onClick={cancel}>{t('shared.cancelDownload')}</Button>
        ) : (
          <Button disabled={entry.elsewhere !== null} onClick={download}>
            {t('shared.downloadPart', {
              name,
              size: bytes === undefined ? '' : ` (${formatBytes(bytes)})`,
              then,
            })}
          </Button>
        )}
      </div>
      <p className="field-hint">
        {t.rich('shared.licenceOf', {
          repository: source.files[0]?.repository ?? '',
          licence: () => <Licence {...(source.licence ?? licence)} />,
        })}{' '}
        {entry.elsewhere && t('shared.otherTab')} {children}
      </p>
    </div>
  );
}

/** Downloads what is missing of a model or tool, after the terms. @returns whether the part is there then */
async function downloadPart(
  { manifest, precision }: LibraryEntry<ToolManifest>,
  component: ComponentId,
): Promise<boolean> {
  const library = getLibrary();
  await withTerms(() =>
    library.call((api) => api.download(manifest.id, precision ?? manifest.precision)),
  );
  const now = entriesOf(await library.call((api) => api.snapshot()));
  const parts = now.find((entry) => entry.manifest.id === manifest.id)?.parts ?? [];
  return parts.some((part) => part.component === component && part.status === 'complete');
}
