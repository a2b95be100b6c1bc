import { useRef } from 'react';
import { createRoot } from 'react-dom/client';
import { expect, onTestFinished, test } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { createRgbaWriter } from '../../../../lib/video/testing/i420';
import { FrameBar } from './frame-bar';

const frames = 48;
const frameRate = 16;

/** A small video, each of whose frames has another grey. */
async function makeVideo(): Promise<File> {
  const [width, height] = [160, 96];
  const writer = await createRgbaWriter({ width, height, frames, frameRate });
  for (let i = 0; i < frames; i++) {
    await writer.add(new Uint8ClampedArray(width * height * 4).fill(40 + 4 * i));
  }
  return new File([await writer.finish()], 'video.mp4', { type: 'video/mp4' });
}

/** Shows the video, paused, with its bar. */
async function open(): Promise<HTMLVideoElement> {
  const file = await makeVideo();
  const url = URL.createObjectURL(file);
  function Harness() {
    const player = useRef<HTMLVideoElement>(null);
    return (
      <>
        <video ref={player} src={url} muted preload="auto" />
        <FrameBar
          player={player}
          file={file}
          url={url}
          frames={frames}
          frameRate={frameRate}
          name="video.mp4"
          onError={console.error}
        />
      </>
    );
  }
  const container = document.body.appendChild(document.createElement('div'));
  const root = createRoot(container);
  root.render(<Harness />);
  onTestFinished(() => {
    root.unmount();
    container.remove();
    URL.revokeObjectURL(url);
  });
  await expect.element(page.getByRole('button', { name: 'Next frame' })).toBeVisible();
  const video = container.querySelector('video');
  if (!video) throw new Error('no video');
  await expect.poll(() => video.readyState).toBeGreaterThanOrEqual(2);
  return video;
}

const count = () => page.getByText(/^Frame \d+ of 48/);
const press = (key: string) =>
  document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));

test('steps add up, whether or not the frame of the one before is shown', async () => {
  await open();
  let frame = 1;
  for (const presses of [2, 5, 1, 3]) {
    for (let i = 0; i < presses; i++) press('.');
    frame += presses;
    await expect.element(count()).toHaveTextContent(`Frame ${frame} of`);
  }
  for (let i = 0; i < 4; i++) await userEvent.keyboard(',');
  await expect.element(count()).toHaveTextContent(`Frame ${frame - 4} of`);
});

test('a step begins where the player was moved to, not where an earlier step was to lead', async () => {
  const video = await open();
  for (let i = 0; i < 60; i++) press('.');
  await expect.element(count()).toHaveTextContent('Frame 48 of');
  press('.');
  video.currentTime = 0.78;
  await expect.element(count()).toHaveTextContent('Frame 13 of');
  press('.');
  await expect.element(count()).toHaveTextContent('Frame 14 of');
});

test('a player whose media time goes on counting in a loop, as that of Firefox, shows the right frame', {
  tags: ['full'],
}, async () => {
  const prototype = HTMLVideoElement.prototype;
  const request = prototype.requestVideoFrameCallback;
  onTestFinished(() => {
    prototype.requestVideoFrameCallback = request;
  });
  prototype.requestVideoFrameCallback = function (callback) {
    return request.call(this, (now, metadata) =>
      // Two rounds of 48 frames.
      callback(now, { ...metadata, mediaTime: metadata.mediaTime + 6 }),
    );
  };
  const video = await open();
  await video.play();
  await new Promise((resolve) => video.addEventListener('ended', resolve));
  await expect.element(count()).toHaveTextContent('Frame 48 of 48');
});
