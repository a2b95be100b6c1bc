import { useLiveQuery } from 'dexie-react-hooks';
import { type RefObject, useState } from 'react';
import type { Completed, ErrorRecord } from '../../../../lib/contract';
import { chainOf } from '../../../../lib/predictions/continuation';
import { getRunner } from '../../../runner';
import { downloadFile } from '../../../shared/browser';
import { Button } from '../../../shared/button';
import { loadFinished } from '../../../shared/finished-settings';
import { ProblemAlert } from '../../../shared/messages';
import { videoToSave } from '../../../shared/saved-video';
import { useTask } from '../../../shared/task';
import { t } from '../../../texts';
import '../../../texts/en/result';
import type { PredictionActions } from '../result-card';
import { ShareButton } from '../share-dialog';
import { CompareDialog } from './compare-dialog';
import { EnhanceDialog, type Enhancement, enhancementsOf } from './enhance-dialog';
import { ExportDialog } from './export-dialog';
import { FrameBar } from './frame-bar';
import { LongerDialog } from './longer-dialog';
import { SoundDialog } from './sound-dialog';
import { TrimDialog } from './trim-dialog';

/** What can be done with a finished video: the frequent things first, the others under *More*. */
export function ResultActions(props: {
  prediction: Completed;
  player: RefObject<HTMLVideoElement | null>;
  /** Null while it is opened, and where it is missing. */
  video: { readonly file: File; readonly url: string } | null;
  missing: boolean;
  /** It is not shown: its frames are not either. */
  blurred: boolean;
  busy: boolean;
  /** File name of the video, with its ending. */
  name: string;
  actions: PredictionActions;
}) {
  const { prediction, player, video, missing, blurred, busy, name, actions } = props;
  const { id, result, parts } = prediction;
  const [dialog, setDialog] = useState<
    'longer' | 'trim' | 'sound' | 'compare' | 'export' | Enhancement | null
  >(null);
  /** Whether the bar that steps through the frames is shown. */
  const [frames, setFrames] = useState(false);
  const finished = useLiveQuery(() => loadFinished(getRunner().store.database), []);
  const [frameError, setFrameError] = useState<ErrorRecord | null>(null);
  const task = useTask();
  const chain =
    useLiveQuery(() => {
      const { store } = getRunner();
      return chainOf(prediction, (id) => store.get(id));
    }, [prediction]) ?? [];
  const download = (file: File) =>
    task.run(async () => {
      downloadFile(await videoToSave(getRunner().store, prediction, file), name);
    });
  const close = () => setDialog(null);
  const open = (next: typeof dialog) => {
    player.current?.pause();
    setDialog(next);
  };
  const shown = !blurred && !missing;
  const enhancement = enhancementsOf(prediction).find(({ kind }) => kind === dialog)?.kind;
  return (
    <>
      <div className="result-actions row wrap gap-8-16 between">
        <div className="actions">
          <Button
            className="primary"
            disabled={!video}
            onClick={() => video && download(video.file)}
          >
            {t('result.download')}
          </Button>
          <ShareButton prediction={prediction} file={video?.file ?? null} name={name} />
          <Button
            disabled={!video || blurred}
            aria-describedby={blurred ? 'result-off' : undefined}
            onClick={() => open('longer')}
          >
            {t('result.longer')}
          </Button>
        </div>
        <div className="actions small">
          <Button
            title={t('result.lastFrameHint')}
            aria-describedby={blurred ? 'result-off' : undefined}
            disabled={!video || blurred}
            onClick={() => video && actions.onUseLastFrame(video.file)}
          >
            {t('result.lastFrame')}
          </Button>
          <Button onClick={() => actions.onUseSettings(prediction)}>
            {t('result.useSettings')}
          </Button>
          {!parts && (
            <Button disabled={busy} onClick={() => actions.onRunAgain(id)}>
              {t('result.runAgain')}
            </Button>
          )}
          <Button className="danger" onClick={() => actions.onDelete(id)}>
            {t('result.delete')}
          </Button>
          <Button popoverTarget="result-more">{t('result.more')}</Button>
          <div id="result-more" popover="auto" className="menu">
            {shown && (
              <>
                <MenuItem name={t('result.frameByFrame')} onClick={() => setFrames(!frames)} />
                <MenuItem
                  name={chain.length > 1 ? t('result.joinAndTrim') : t('result.trim')}
                  disabled={!video}
                  onClick={() => open('trim')}
                />
                <MenuItem
                  name={t('result.sound.title')}
                  disabled={!video}
                  onClick={() => open('sound')}
                />
                <MenuItem name={t('result.compare')} onClick={() => open('compare')} />
                <MenuItem
                  name={t('result.export')}
                  disabled={!video}
                  onClick={() => open('export')}
                />
                {enhancementsOf(prediction).map(({ kind, possible }) => (
                  <MenuItem
                    key={kind}
                    name={t(`result.enhance.${kind}`)}
                    disabled={!video || !possible}
                    title={possible ? undefined : t('result.smoothFirst')}
                    onClick={() => open(kind)}
                  />
                ))}
              </>
            )}
            <MenuItem name={t('result.useSeed')} onClick={() => actions.onUseSeed(result.seed)} />
          </div>
        </div>
      </div>
      <p className="field-hint">
        {t('result.holds', { images: String(finished?.imageInFile ?? true) })}
      </p>
      {blurred && (
        <p id="result-off" className="field-hint">
          {t('result.showFirst')}
        </p>
      )}
      {/* Its keys work also while it is not shown. */}
      {shown && (
        <div hidden={!frames}>
          <FrameBar
            player={player}
            name={name}
            file={video?.file ?? null}
            url={video?.url ?? null}
            frames={result.frames}
            frameRate={result.frameRate}
            onError={(error) => setFrameError(error.toRecord())}
          />
        </div>
      )}
      <ProblemAlert error={task.problem ?? frameError} />
      {dialog === 'longer' && (
        <LongerDialog
          prediction={prediction}
          onStart={(choice) => actions.onMakeLonger(prediction, choice)}
          onClose={close}
        />
      )}
      {dialog === 'trim' && chain.length > 0 && (
        <TrimDialog chain={chain} onKept={actions.onKept} onClose={close} />
      )}
      {dialog === 'sound' && video && (
        <SoundDialog prediction={prediction} file={video.file} name={name} onClose={close} />
      )}
      {dialog === 'export' && video && (
        <ExportDialog prediction={prediction} file={video.file} name={name} onClose={close} />
      )}
      {enhancement && video && (
        <EnhanceDialog
          kind={enhancement}
          prediction={prediction}
          file={video.file}
          onKept={actions.onKept}
          onClose={close}
        />
      )}
      {dialog === 'compare' && <CompareDialog first={prediction} onClose={close} />}
    </>
  );
}

/** A button of the menu, which it closes. */
function MenuItem(props: {
  name: string;
  title?: string | undefined;
  disabled?: boolean;
  onClick: () => void;
}) {
  const { name, onClick, ...rest } = props;
  return (
    <Button
      {...rest}
      onClick={({ currentTarget }) => {
        // The focus goes back to the button of the menu: a dialog that opens gives it back to that.
        currentTarget.closest<HTMLElement>('[popover]')?.hidePopover();
        onClick();
      }}
    >
      {name}
    </Button>
  );
}
