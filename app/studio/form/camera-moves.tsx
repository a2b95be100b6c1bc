import { type ComponentProps, useRef } from 'react';
import { appPath, heroPosterPath } from '../../../lib/contract';
import { useReducedMotion } from '../../shared/browser';
import { t } from '../../texts';
import { cameraMoves, type Phrase, toggleSentence } from './phrases';

/** Buttons that put a camera move into a prompt and take it out again; with clips of what the bundled model makes of them. */
export function CameraMoves(props: {
  prompt: string;
  disabled: boolean;
  onPrompt: (prompt: string) => void;
}) {
  const { prompt, disabled, onPrompt } = props;
  const still = useReducedMotion();
  const buttonOf = (move: Phrase) => ({
    type: 'button' as const,
    title: move.text,
    disabled,
    'aria-pressed': prompt.includes(move.text),
    onClick: () => onPrompt(toggleSentence(prompt, move.text)),
  });
  return (
    <>
      <ul className="examples stack gap-8 halves moves">
        {cameraMoves.map(
          (move) =>
            move.clip && (
              <li key={move.name}>
                <ClipButton clip={appPath(move.clip)} still={still} button={buttonOf(move)}>
                  {t(move.name)}
                </ClipButton>
              </li>
            ),
        )}
      </ul>
      <p className="words">
        {cameraMoves.map(
          (move) =>
            !move.clip && (
              <button key={move.name} className="word" {...buttonOf(move)}>
                {t(move.name)}
              </button>
            ),
        )}
      </p>
    </>
  );
}

/** A button whose clip plays while the pointer or the focus is on it, unless motion is not wanted. */
function ClipButton(props: {
  clip: string;
  still: boolean;
  button: ComponentProps<'button'>;
  children: string;
}) {
  const video = useRef<HTMLVideoElement>(null);
  const play = () => {
    // The browser may refuse, or the pointer has left before it began.
    if (!props.still) video.current?.play().catch(() => {});
  };
  const stop = () => {
    video.current?.pause();
    // Shows the poster again.
    video.current?.load();
  };
  return (
    <button
      {...props.button}
      onPointerEnter={play}
      onFocus={play}
      onPointerLeave={stop}
      onBlur={stop}
    >
      <video
        ref={video}
        src={props.clip}
        poster={appPath(heroPosterPath)}
        width={320}
        height={180}
        preload="none"
        loop
        muted
        playsInline
        tabIndex={-1}
        aria-hidden="true"
      />
      {props.children}
    </button>
  );
}
