import { useState } from 'react';
import type { Completed } from '../../../../lib/contract';
import { Modal } from '../../../models/modal';
import { getRunner } from '../../../runner';
import { downloadFile, useObjectUrl } from '../../../shared/browser';
import { Button } from '../../../shared/button';
import { tagsToSave } from '../../../shared/saved-video';
import { t } from '../../../texts';
import '../../../texts/en/result';
import { TaskStatus, useTask } from '../../../shared/task';

/** Puts sound of an audio file under a finished video, plays the result and saves it. */
export function SoundDialog(props: {
  prediction: Completed;
  file: File;
  /** File name of the video, with its ending. */
  name: string;
  onClose: () => void;
}) {
  const { prediction, file, name, onClose } = props;
  const [audio, setAudio] = useState<{ file: File; seconds: number } | null>(null);
  const [output, setOutput] = useState<Blob | null>(null);
  const url = useObjectUrl(output);
  const task = useTask();
  const load = () => import('../../../../lib/video/sound');

  const choose = (chosen: File | undefined) => {
    setAudio(null);
    task.run(async (signal) => {
      if (!chosen) return;
      const seconds = await (await load()).readSoundDuration(chosen);
      if (!signal.aborted) setAudio({ file: chosen, seconds });
    });
  };
  const make = (data: FormData) => {
    if (!audio) return;
    const numberOf = (field: string) => Number(data.get(field));
    const [start, fadeIn, fadeOut] = [numberOf('start'), numberOf('fadeIn'), numberOf('fadeOut')];
    const settings = { start, fadeIn, fadeOut, loop: data.has('loop') };
    task.run(async (signal) => {
      const { addSound } = await load();
      const tags = await tagsToSave(getRunner().store, prediction);
      const sounding = await addSound(file, audio.file, settings, tags, signal);
      if (!signal.aborted) setOutput(sounding);
    });
  };

  return (
    <Modal title={t('result.sound.title')} width={520} close={null} onClose={onClose}>
      <form
        className="stack gap-16"
        onChange={() => setOutput(null)}
        onSubmit={(event) => {
          event.preventDefault();
          if (!output) return make(new FormData(event.currentTarget));
          downloadFile(output, name.replace(/\.mp4$/, '-sound.mp4'));
          onClose();
        }}
      >
        <div className="field">
          <label htmlFor="sound-file">{t('result.sound.file')}</label>
          <input
            id="sound-file"
            type="file"
            accept="audio/*,video/*"
            aria-describedby="sound-hint"
            onChange={(event) => choose(event.target.files?.[0])}
          />
          <p className="field-hint" id="sound-hint">
            {audio
              ? t('result.sound.length', { seconds: audio.seconds.toFixed(1) })
              : t('result.sound.hint')}
          </p>
        </div>
        <div className="thirds stack gap-12">
          {/* Before the end: something has to be heard. */}
          <Seconds name="start" max={audio ? Math.ceil(audio.seconds * 10 - 1) / 10 : 0} />
          <Seconds name="fadeIn" />
          <Seconds name="fadeOut" initial={1} />
        </div>
        <div className="field">
          <label className="check">
            <input type="checkbox" name="loop" defaultChecked />
            {t('result.sound.loop')}
          </label>
        </div>
        {url && (
          <>
            {/* biome-ignore lint/a11y/useMediaCaption: the user has just chosen the sound. */}
            <video
              className="rounded"
              src={url}
              controls
              playsInline
              aria-label={t('result.sound.title')}
            />
            <p className="field-hint" role="status">
              {t('result.sound.made')}
            </p>
          </>
        )}
        <TaskStatus task={task} name={t(audio ? 'result.writing' : 'result.opening')} />
        <div className="actions">
          <button type="submit" className="primary" disabled={!audio}>
            {output ? t('result.download') : t('result.sound.add')}
          </button>
          <Button onClick={onClose}>{t('result.cancel')}</Button>
        </div>
      </form>
    </Modal>
  );
}

function Seconds(props: { name: 'start' | 'fadeIn' | 'fadeOut'; initial?: number; max?: number }) {
  const { name, initial = 0, max } = props;
  return (
    <div className="field">
      <label htmlFor={`sound-${name}`}>{t(`result.sound.${name}`)}</label>
      <input
        id={`sound-${name}`}
        name={name}
        type="number"
        inputMode="decimal"
        required
        min={0}
        max={max}
        step={0.1}
        defaultValue={initial}
      />
    </div>
  );
}
