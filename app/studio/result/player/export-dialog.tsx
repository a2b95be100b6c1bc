import { useEffect, useRef, useState } from 'react';
import { type ErrorRecord, toKinoraError } from '../../../../lib/contract/errors';
import type { Completed } from '../../../../lib/contract/prediction';
import type { ExportFormat } from '../../../../lib/video/export-video';
import { Modal } from '../../../models/modal';
import { downloadFile } from '../../../shared/browser';
import { Choice } from '../../../shared/fields';
import { Problem } from '../../../shared/messages';
import { t } from '../../../texts';
import '../../../texts/en/result';
import './player.css';

type ExportState =
  | { readonly status: 'choosing'; readonly problem: ErrorRecord | null }
  /** @property share from 0 to 1 */
  | { readonly status: 'writing'; readonly share: number };

/** Saves a finished video in another format than MP4. */
export function ExportDialog(props: {
  prediction: Completed;
  file: File;
  /** File name of the video, with its ending. */
  name: string;
  onClose: () => void;
}) {
  const { prediction, file, name, onClose } = props;
  const { width, height } = prediction.result;
  const [format, setFormat] = useState<ExportFormat>('gif');
  const [offered, setOffered] = useState<readonly ExportFormat[]>([]);
  const [state, setState] = useState<ExportState>({ status: 'choosing', problem: null });
  const writing = useRef<AbortController>(null);
  useEffect(() => {
    let current = true;
    findFormats({ width, height }).then(
      (found) => current && setOffered(found),
      (thrown: unknown) =>
        current && setState({ status: 'choosing', problem: toKinoraError(thrown).toRecord() }),
    );
    return () => {
      current = false;
      writing.current?.abort();
    };
  }, [width, height]);

  async function save(): Promise<void> {
    const running = new AbortController();
    const { signal } = running;
    writing.current = running;
    setState({ status: 'writing', share: 0 });
    try {
      const { exportVideo } = await import('../../../../lib/video/export-video');
      const onProgress = (share: number) => setState({ status: 'writing', share });
      const made = await exportVideo(file, format, { signal, onProgress });
      downloadFile(made, name.replace(/mp4$/, format));
      onClose();
    } catch (thrown) {
      if (signal.aborted) return;
      setState({ status: 'choosing', problem: toKinoraError(thrown).toRecord() });
    }
  }

  const busy = state.status === 'writing';
  return (
    <Modal titleId="export-title" className="export-dialog" onClose={onClose}>
      <h2 id="export-title">{t('result.exportTitle')}</h2>
      <fieldset className="field" disabled={busy}>
        <legend>{t('result.format')}</legend>
        <div className="choices">
          {offered.map((one) => (
            <Choice
              key={one}
              name="export-format"
              checked={format === one}
              onChange={() => setFormat(one)}
            >
              <span>
                {t(`result.formats.${one}`)}
                <small>{t(`result.formatHints.${one}`)}</small>
              </span>
            </Choice>
          ))}
        </div>
      </fieldset>
      {state.status === 'choosing' && state.problem && (
        <div role="alert">
          <Problem error={state.problem} />
        </div>
      )}
      {busy && (
        <label className="dialog-text">
          {t('result.writing')}
          <progress value={state.share} max={1} />
        </label>
      )}
      <div className="actions">
        <button
          type="button"
          className="primary"
          disabled={busy || offered.length === 0}
          onClick={() => void save()}
        >
          {t('result.save')}
        </button>
        <button type="button" onClick={onClose}>
          {t('result.cancel')}
        </button>
      </div>
    </Modal>
  );
}

/** The formats that this browser writes. */
async function findFormats(size: { readonly width: number; readonly height: number }) {
  const { canExport, exportFormats } = await import('../../../../lib/video/export-video');
  const can = await Promise.all(exportFormats.map((format) => canExport(format, size)));
  return exportFormats.filter((_, index) => can[index]);
}
