import { useEffect, useRef } from 'react';
import type { Prediction } from '../../lib/contract/prediction';
import { downloadFile } from './download';
import { formatBytes, formatSeconds, formatSize } from './format';
import { memoryFact } from './memory-plan';
import { Problem } from './problem';
import { SeedButton } from './seed-button';
import { useObjectUrl } from './use-object-url';
import { useReducedMotion } from './use-reduced-motion';
import { useVideo } from './use-video';

export type Completed = Extract<Prediction, { status: 'completed' }>;

/** What can be done with a past prediction. */
export interface PredictionActions {
  onUseSettings: (prediction: Prediction) => void;
  onUseSeed: (seed: number) => void;
  onUseLastFrame: (video: File) => void;
  onRunAgain: (id: string) => void;
  onDelete: (id: string) => void;
}

/** A finished video with all that is known about it. */
export function ResultCard(props: {
  prediction: Completed;
  /** Moves the focus here: the video has just been made or picked. */
  focused: boolean;
  busy: boolean;
  actions: PredictionActions;
}) {
  const { prediction, focused, busy, actions } = props;
  const { id, parameters, result } = prediction;
  const heading = useRef<HTMLHeadingElement>(null);
  const video = useVideo(result.videoFile);
  const file = video.status === 'ready' ? video.file : null;
  const url = useObjectUrl(file);
  const still = useReducedMotion();
  useEffect(() => {
    if (focused) heading.current?.focus();
  }, [focused]);
  const name = `kinora-${result.seed}-${id.slice(0, 8)}.mp4`;
  return (
    <section className="panel stage" aria-labelledby="result-title">
      <h2 id="result-title" ref={heading} tabIndex={-1}>
        Your video
      </h2>
      <div className="screen" data-size={result.size}>
        {url && (
          <video
            src={url}
            controls
            loop={!still}
            autoPlay={!still}
            muted
            playsInline
            aria-label={parameters.prompt}
          />
        )}
        {video.status === 'missing' && <Problem error={video.error} />}
      </div>
      <p className="prompt-text">{parameters.prompt}</p>
      <dl className="facts">
        <Fact name="Size" value={formatSize(result.size)} />
        <Fact name="Duration" value={`${parameters.duration} s, ${result.frames} frames`} />
        <Fact
          name="Steps"
          value={`${parameters.num_inference_steps}${result.finishedEarly ? ', finished early' : ''}`}
        />
        <div>
          <dt>Seed</dt>
          <dd>
            <SeedButton seed={result.seed} />
          </dd>
        </div>
        <Fact name="Time taken" value={formatSeconds(result.timings.total, true)} />
        <Fact
          name="File"
          value={`${formatBytes(result.videoBytes)}, ${encoders[result.encoder]}`}
        />
        <Fact name="Model" value={`${result.model} on ${devices[result.backend]}`} />
        {result.memory && <Fact name="Memory" value={memoryFact(result.memory)} />}
      </dl>
      {result.memory && result.memory.decodeTiles > 1 && (
        <p className="field-hint">
          The frames were decoded in tiles to fit the GPU, so they may differ slightly from a full
          decode.
        </p>
      )}
      <div className="actions">
        <button
          type="button"
          className="primary"
          disabled={!file}
          onClick={() => file && downloadFile(file, name)}
        >
          Download
        </button>
        <button type="button" onClick={() => actions.onUseSettings(prediction)}>
          Use settings
        </button>
        <button type="button" onClick={() => actions.onUseSeed(result.seed)}>
          Use seed
        </button>
        <button type="button" disabled={!file} onClick={() => file && actions.onUseLastFrame(file)}>
          Last frame as new start image
        </button>
        <button type="button" disabled={busy} onClick={() => actions.onRunAgain(id)}>
          Run again
        </button>
        <button type="button" className="danger" onClick={() => actions.onDelete(id)}>
          Delete
        </button>
      </div>
    </section>
  );
}

const encoders = { webcodecs: 'H.264 by WebCodecs', ffmpeg: 'H.264 by ffmpeg' } as const;
const devices = { webgpu: 'WebGPU', wasm: 'the CPU' } as const;

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
