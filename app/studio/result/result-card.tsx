import '../videos.css';
import { useEffect, useRef, useState } from 'react';
import {
  type Backend,
  type Completed,
  type ErrorRecord,
  formatBytes,
  formatSize,
  type KernelRecord,
  type KinoraError,
  type Prediction,
  type PromptOptimization,
} from '../../../lib/contract';
import { showOpened, useObjectUrl, useReducedMotion } from '../../shared/browser';
import { Button } from '../../shared/button';
import { Fact } from '../../shared/fact';
import { Problem, ProblemAlert } from '../../shared/messages';
import { memoryUseText } from '../../shared/run-progress';
import { blurReason } from '../../shared/safety-text';
import { Veil } from '../../shared/veil';
import { t } from '../../texts';
import '../../texts/en/improve';
import '../../texts/en/result';
import '../../texts/en/run';
import { formatTime } from '../../texts/format';
import { AppliedFacts } from './applied-facts';
import { outcomeText } from './optimization-text';
import type { LongerChoice } from './player/longer-dialog';
import { ResultActions } from './player/result-actions';
import { Refine } from './refine';
import { useVideo } from './use-video';
import { Verdict } from './verdict';
import { flowShiftText, lastImageText, loraText, secondsOf, stepsText } from './video-facts';
import { videoName } from './video-name';

/** The actions on a past prediction. */
export interface PredictionActions {
  onUseSettings: (prediction: Prediction) => void;
  onUseSeed: (seed: number) => void;
  onUseLastFrame: (video: File) => void;
  /** Makes a video that goes on where this one ends. */
  onMakeLonger: (prediction: Completed, choice: LongerChoice) => void;
  onRunAgain: (id: string) => void;
  /** Makes a draft in `standard`, with its seed. */
  onMakeStandard: (id: string) => void;
  /** Goes on with an interrupted run. */
  /** @param backend that computes the rest; the one that has begun it when absent */
  onResume: (id: string, backend?: Backend) => void;
  /** Decodes what an interrupted run has. */
  onFinish: (id: string) => void;
  /** Decodes a finished video again in full quality. */
  onRefine: (id: string) => void;
  onDelete: (id: string) => void;
  /** A video that was cut or joined was stored. */
  onKept: (id: string) => void;
  /** A video was deleted because it may not be kept. */
  onDeleted: (error: KinoraError) => void;
}

/** A finished video with its facts and actions. */
export function ResultCard(props: {
  prediction: Completed;
  /** Moves the focus here, because the video was just finished or selected. */
  focused: boolean;
  busy: boolean;
  /** Why it could not be refined. */
  problem: ErrorRecord | null;
  actions: PredictionActions;
}) {
  const { prediction, focused, busy, problem, actions } = props;
  const { id, parameters, result, parts } = prediction;
  const heading = useRef<HTMLHeadingElement>(null);
  const video = useVideo(result.videoFile);
  const file = video.status === 'ready' ? video.file : null;
  const url = useObjectUrl(file);
  const still = useReducedMotion();
  const player = useRef<HTMLVideoElement>(null);
  const [revealed, setRevealed] = useState(false);
  const reason = blurReason(result.safety);
  const blurred = reason !== null && !revealed;
  const toggle = () => {
    setRevealed(blurred);
    if (!blurred) player.current?.pause();
    // The browser may refuse to play; the controls are there then.
    else if (!still) player.current?.play().catch(() => {});
  };
  useEffect(() => {
    if (focused) heading.current?.focus();
  }, [focused]);
  const optimization = result.promptOptimization;
  const prompt = optimization?.text ?? parameters.prompt;
  const name = videoName(prediction);
  const time = formatTime(result.timings.total, true);
  return (
    <section className="panel stage" aria-labelledby="result-title">
      <h2 id="result-title" ref={heading} tabIndex={-1}>
        {t('result.yourVideo')}
      </h2>
      <div className="screen" data-size={result.size}>
        {url && (
          <Veil what="video" reason={reason} revealed={revealed} onToggle={toggle}>
            <video
              ref={player}
              src={url}
              controls={!blurred}
              loop={!still}
              autoPlay={!still && !blurred}
              muted
              playsInline
              aria-label={prompt}
            />
          </Veil>
        )}
        {video.status === 'missing' && <Problem error={video.error} />}
      </div>
      <ResultActions
        prediction={prediction}
        player={player}
        name={name}
        video={file && url ? { file, url } : null}
        missing={video.status === 'missing'}
        blurred={blurred}
        busy={busy}
        actions={actions}
      />
      <p className="break">{prompt}</p>
      {optimization && <PromptRecord optimization={optimization} />}
      <div className="result-facts flex gap-8-16 wrap between">
        <details onToggle={showOpened}>
          <summary className="numbers break">{factsLine(prediction)}</summary>
          <dl className="facts">
            <Fact name={t('result.size')}>{formatSize(`${result.width}*${result.height}`)}</Fact>
            <Fact name={t('result.duration')}>
              {t('result.durationOf', { seconds: secondsOf(prediction), frames: result.frames })}
            </Fact>
            {parameters.loop && <Fact name={t('result.settings.loop')}>{t('result.yes')}</Fact>}
            {prediction.options.lastImage && (
              <Fact name={t('result.settings.lastImage')}>{endText(prediction)}</Fact>
            )}
            <AppliedFacts result={result} parameters={parameters} />
            <Fact name={t('result.settings.flowShift')}>{flowShiftText(prediction)}</Fact>
            {parameters.loras.length > 0 && (
              <Fact name={t('result.settings.loras')}>{loraText(parameters)}</Fact>
            )}
            {parameters.negative_prompt && (
              <Fact name={t('result.settings.negativePrompt')}>{parameters.negative_prompt}</Fact>
            )}
            <Fact name={t('result.seed')}>
              <SeedButton seed={result.seed} />
            </Fact>
            {result.timings.total > 0 && (
              <Fact name={t('result.timeTaken')}>
                {result.resumes ? t('result.sinceResumed', { time }) : time}
              </Fact>
            )}
            <Fact name={t('result.file')}>
              {t('shared.listOf', {
                first: formatBytes(result.videoBytes),
                second: t(encoders[result.encoder]),
              })}
            </Fact>
            <Fact name={t('result.inside')}>{t('result.insideOf')}</Fact>
            <Fact name={t('shared.model')}>
              {t(devices[result.backend], { model: result.model })}
            </Fact>
            {parts && (
              <Fact name={t('result.madeOf')}>
                {t('result.madeOfParts', {
                  count: parts.length,
                  frames: parts.reduce((sum, { from, to }) => sum + to - from, 0),
                })}
              </Fact>
            )}
            {result.resumes && (
              <Fact name={t('result.resumed')}>
                {t('result.resumedTimes', { count: result.resumes })}
              </Fact>
            )}
            {result.colours?.map(({ clip, encoding: { gain } }) => (
              <Fact key={clip} name={t('result.colours')}>
                {t('result.coloursOf', {
                  red: formatGain(gain[0]),
                  green: formatGain(gain[1]),
                  blue: formatGain(gain[2]),
                })}
              </Fact>
            ))}
            {result.kernels && (
              <Fact name={t('result.kernels')}>
                <span title={result.kernels.keys.join('\n')}>{kernelsText(result.kernels)}</span>
              </Fact>
            )}
            {result.memory && <Fact name={t('result.memory')}>{memoryUseText(result.memory)}</Fact>}
          </dl>
          {result.memory && result.memory.decodeTiles > 1 && (
            <p className="field-hint">{t('result.tiledDecode')}</p>
          )}
        </details>
        <Verdict prediction={prediction} busy={busy} onDeleted={actions.onDeleted} />
      </div>
      <ProblemAlert error={problem} />
      {prediction.profile === 'ultra-fast' && !parts && (
        <div className="split">
          <p className="field-hint grow">{t('run.standardHint')}</p>
          <Button disabled={busy} onClick={() => actions.onMakeStandard(id)}>
            {t('run.makeStandard')}
          </Button>
        </div>
      )}
      <Refine prediction={prediction} busy={busy} onRefine={() => actions.onRefine(id)} />
    </section>
  );
}

/** A factor that colours were multiplied by. */
function formatGain(gain = 1): string {
  return gain.toFixed(2);
}

const encoders = {
  webcodecs: 'result.byWebcodecs',
  ffmpeg: 'result.byFfmpeg',
} as const;
const devices = { webgpu: 'result.onWebgpu', wasm: 'result.onCpu' } as const;

/** What a video is, in one line. */
function factsLine(prediction: Completed): string {
  const { parameters, result } = prediction;
  const { total } = result.timings;
  return [
    formatSize(`${result.width}*${result.height}`),
    t('common.seconds', { seconds: secondsOf(prediction) }),
    t('result.stepsOf', { steps: stepsText(prediction) }),
    t('result.seedOf', { seed: result.seed }),
    ...(parameters.loras.length > 0 ? [loraText(parameters)] : []),
    ...(total > 0 ? [t('result.madeIn', { time: formatTime(total, true) })] : []),
  ].join(' · ');
}

/** The end image, and whether the video reaches it: one that was finished early may have no last clip. */
function endText(prediction: Completed): string {
  const { parameters, result, parts } = prediction;
  const name = lastImageText(prediction) ?? '';
  const second = parameters.last_image_at ?? parameters.duration;
  const ends = parts || result.frames > result.frameRate * second;
  return ends ? name : t('result.endNotReached', { name });
}

/** Shows the seed, and copies it when clicked. */
function SeedButton({ seed }: { seed: number }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    navigator.clipboard.writeText(String(seed)).then(
      () => setCopied(true),
      () => {}, // Without permission, the user can still select the number on the page.
    );
  };
  return (
    <Button className="inline" title={t('result.copySeed')} onClick={copy}>
      {seed}
      <span role="status" className="copied muted">
        {copied && ` ${t('result.copied')}`}
      </span>
    </Button>
  );
}

/** What computed, and how often a number did not fit. */
function kernelsText({ mode, clamped: count }: KernelRecord): string {
  const kernels = t(`shared.kernels.${mode}`);
  return count ? t('result.clamped', { kernels, count }) : kernels;
}

/** How the prompt of a result was improved, and the original; the result shows the other text. */
function PromptRecord({ optimization }: { optimization: PromptOptimization }) {
  const { original, text } = optimization;
  return (
    <details className="prompt-record" onToggle={showOpened}>
      <summary>{t('improve.optimizer')}</summary>
      <p className="field-hint">{outcomeText(optimization)}</p>
      {original !== text && (
        <>
          <p className="field-hint">{t('improve.asWritten')}</p>
          <p className="break">{original}</p>
        </>
      )}
    </details>
  );
}
