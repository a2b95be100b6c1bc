import { useEffect, useState } from 'react';
import type { Completed } from '../../../../lib/contract';
import type { ExportFormat } from '../../../../lib/video/export-video';
import { Modal } from '../../../models/modal';
import { downloadFile } from '../../../shared/browser';
import { Button } from '../../../shared/button';
import { Choice } from '../../../shared/fields';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { TaskStatus, useFileTask } from './file-task';

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
  const [offered, setOffered] = useState<readonly ExportFormat[]>(['gif']);
  const task = useFileTask();
  useEffect(() => {
    let current = true;
    // Without an answer there is the one that each browser writes.
    findFormats({ width, height }).then(
      (formats) => current && setOffered(formats),
      () => {},
    );
    return () => {
      current = false;
    };
  }, [width, height]);

  const save = () =>
    task.run(async (signal, onProgress) => {
      const { exportVideo } = await import('../../../../lib/video/export-video');
      const exported = await exportVideo(file, format, { signal, onProgress });
      downloadFile(exported, name.replace(/mp4$/, format));
      onClose();
    });

  const busy = task.share !== null;
  return (
    <Modal
      title={t('result.exportTitle')}
      width={520}
      buttons={
        <Button className="primary" disabled={busy} onClick={save}>
          {t('result.save')}
        </Button>
      }
      close={t('result.cancel')}
      onClose={onClose}
    >
      <fieldset className="field" disabled={busy}>
        <legend>{t('result.format')}</legend>
        <div className="choices stacked">
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
      <TaskStatus task={task} name={t('result.writing')} />
    </Modal>
  );
}

/** The formats that this browser writes. */
async function findFormats(size: { readonly width: number; readonly height: number }) {
  const { canExport, exportFormats } = await import('../../../../lib/video/export-video');
  const can = await Promise.all(exportFormats.map((format) => canExport(format, size)));
  return exportFormats.filter((_, index) => can[index]);
}
