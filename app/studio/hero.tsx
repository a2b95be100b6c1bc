import { useRef, useState } from 'react';
import { appPath, heroClipPath, heroPosterPath } from '../../lib/contract';
import { useReducedMotion } from '../shared/browser';
import { Button } from '../shared/button';
import { Picture } from '../shared/icons';
import { t } from '../texts';
import '../texts/en/form';

/** A clip that the bundled model made (public/samples/README.md). Where motion is not wanted, its first frame. */
export function Hero() {
  const video = useRef<HTMLVideoElement>(null);
  const still = useReducedMotion();
  const [playing, setPlaying] = useState(false);
  const toggle = () => {
    if (playing) video.current?.pause();
    // The browser may refuse to play, or the button was pressed again.
    else video.current?.play().catch(() => {});
  };
  return (
    <figure className="hero relative full clip wide rounded on-sunken">
      <video
        ref={video}
        src={appPath(heroClipPath)}
        poster={appPath(heroPosterPath)}
        width={640}
        height={360}
        preload={still ? 'none' : 'auto'}
        autoPlay={!still}
        loop
        muted
        playsInline
        aria-label={t('form.heroClip')}
        onPlay={() => setPlaying(true)}
        onPause={() => setPlaying(false)}
      />
      <figcaption className="overlay text-s">{t('form.heroCaption')}</figcaption>
      <Button
        className="hero-toggle overlay"
        aria-label={playing ? t('form.pauseClip') : t('form.playClip')}
        onClick={toggle}
      >
        <span aria-hidden="true" data-playing={playing} />
      </Button>
    </figure>
  );
}

/** Its room, and its first frame: in the page from the start, so that the browser fetches it while the scripts load. */
export function HeroPlace() {
  return (
    <div className="hero relative full clip wide rounded on-sunken">
      <Picture src={appPath(heroPosterPath)} alt="" width={640} height={360} />
    </div>
  );
}
