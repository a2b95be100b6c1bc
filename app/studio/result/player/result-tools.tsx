import { useLiveQuery } from 'dexie-react-hooks';
import { type RefObject, useState } from 'react';
import type { ErrorRecord } from '../../../../lib/contract/errors';
import type { Completed } from '../../../../lib/contract/prediction';
import { chainOf } from '../../../../lib/predictions/continuation';
import { getRunner } from '../../../runner';
import { Problem } from '../../../shared/messages';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { CompareDialog } from './compare-dialog';
import { ExportDialog } from './export-dialog';
import { FrameBar } from './frame-bar';
import { type LongerChoice, LongerDialog } from './longer-dialog';
import { TrimDialog } from './trim-dialog';

/** What can be done with the video of a result: its frames, more of it, less of it, beside another one. */
export function ResultTools(props: {
  prediction: Completed;
  player: RefObject<HTMLVideoElement | null>;
  /** Null while it is opened: the tools have their room, and cannot be used. */
  video: { readonly file: File; readonly url: string } | null;
  /** File name of the video, with its ending. */
  name: string;
  onMakeLonger: (choice: LongerChoice) => void;
  /** A video that was cut or joined was stored. */
  onKept: (id: string) => void;
}) {
  const { prediction, player, video, name, onMakeLonger, onKept } = props;
  const [dialog, setDialog] = useState<'longer' | 'trim' | 'compare' | 'export' | null>(null);
  const [problem, setProblem] = useState<ErrorRecord | null>(null);
  const chain =
    useLiveQuery(() => {
      const { store } = getRunner();
      return chainOf(prediction, (id) => store.get(id));
    }, [prediction]) ?? [];
  const close = () => setDialog(null);
  const open = (next: typeof dialog) => {
    player.current?.pause();
    setDialog(next);
  };
  return (
    <>
      <div className="result-tools" inert={!video} data-opening={!video}>
        <FrameBar
          player={player}
          name={name}
          file={video?.file ?? null}
          url={video?.url ?? null}
          frames={prediction.result.frames}
          frameRate={prediction.result.frameRate}
          onError={(error) => setProblem(error.toRecord())}
        />
        <div className="actions">
          <button type="button" className="small" onClick={() => open('longer')}>
            {t('result.longer')}
          </button>
          <button type="button" className="small" onClick={() => open('trim')}>
            {chain.length > 1 ? t('result.joinAndTrim') : t('result.trim')}
          </button>
          <button type="button" className="small" onClick={() => open('compare')}>
            {t('result.compare')}
          </button>
          <button type="button" className="small" onClick={() => open('export')}>
            {t('result.export')}
          </button>
        </div>
      </div>
      {problem && (
        <div role="alert">
          <Problem error={problem} />
        </div>
      )}
      {dialog === 'longer' && (
        <LongerDialog prediction={prediction} onStart={onMakeLonger} onClose={close} />
      )}
      {dialog === 'trim' && chain.length > 0 && (
        <TrimDialog chain={chain} onKept={onKept} onClose={close} />
      )}
      {dialog === 'export' && video && (
        <ExportDialog prediction={prediction} file={video.file} name={name} onClose={close} />
      )}
      {dialog === 'compare' && <CompareDialog first={prediction} onClose={close} />}
    </>
  );
}
