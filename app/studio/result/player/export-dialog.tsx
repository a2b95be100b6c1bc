import { useState } from 'react';
import type { Completed, PixelSize } from '../../../../lib/contract';
import type { ExportFormat } from '../../../../lib/video/export-video';
import { Modal } from '../../../models/modal';
import { downloadFile, useAnswer } from '../../../shared/browser';
import { Button } from '../../../shared/button';
import { ChoiceField } from '../../../shared/fields';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { TaskStatus, useTask } from '../../../shared/task';

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
  // Without an answer there is the one that each browser writes.
  const offered = useAnswer(() => findFormats({ width, height }), [width, height]) ?? ['gif'];
  const task = useTask();

  const save = () =>
    task.run(async (signal, onProgress) => {
      const { exportVideo } = await import('../../../../lib/video/export-video');
      const exported = await exportVideo(file, format, { signal, onProgress });
      downloadFile(exported, name.replace(/mp4$/, format));
      onClose();
    });

  const { busy } = task;
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
      <ChoiceField
        name="export-format"
        legend={t('result.format')}
        disabled={busy}
        stacked
        options={offered}
        chosen={format}
        show={(one) => (
          <span>
            {t(`result.formats.${one}`)}
            <small>{t(`result.formatHints.${one}`)}</small>
          </span>
        )}
        onChange={setFormat}
      />
      <TaskStatus task={task} name={t('result.writing')} />
    </Modal>
  );
}

/** The formats that this browser writes. */
async function findFormats(size: PixelSize): Promise<readonly ExportFormat[]> {
  const { canExport, exportFormats } = await import('../../../../lib/video/export-video');
  const can = await Promise.all(exportFormats.map((format) => canExport(format, size)));
  return exportFormats.filter((_, index) => can[index]);
}
