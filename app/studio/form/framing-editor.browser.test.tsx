/** @module-tag full */
import '../../primitives.css';
import '../../globals.css';
import '../studio.css';
import { useState } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, expect, test } from 'vitest';
import { page, userEvent } from 'vitest/browser';
import { centred, type Framing } from '../../../lib/contract';
import { decodeImage, FrameScaler, frameImage } from '../../../lib/video';
import { FramingEditor } from './framing-editor';

// Of a frame of 640×320 a video of 16:9 shows the middle 569 columns.
const frame = { width: 640, height: 320 };
const video = { width: 320, height: 180 };

let root: Root | undefined;
afterEach(() => {
  root?.unmount();
  document.body.replaceChildren();
});

/** A picture with soft colours and sharp shapes, different at each place. */
async function picture(width: number, height: number): Promise<Blob> {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('no canvas');
  const gradient = context.createLinearGradient(0, 0, width, height);
  gradient.addColorStop(0, '#1450b4');
  gradient.addColorStop(0.5, '#f0c878');
  gradient.addColorStop(1, '#781e46');
  context.fillStyle = gradient;
  context.fillRect(0, 0, width, height);
  context.fillStyle = '#ffffff';
  context.fillRect(width * 0.1, height * 0.2, width * 0.15, height * 0.2);
  context.fillStyle = '#103010';
  context.beginPath();
  context.arc(width * 0.7, height * 0.6, height * 0.2, 0, 7);
  context.fill();
  return canvas.convertToBlob();
}

/** Shows the editor; `framing()` is what was chosen last. */
async function open(image: Blob): Promise<{ framing: () => Framing }> {
  const { width, height } = await createImageBitmap(image);
  let chosen: Framing = centred;
  function Harness() {
    const [framing, setFraming] = useState<Framing>();
    chosen = framing ?? centred;
    const sizes = { image: { width, height }, frame, video };
    return (
      <div style={{ width: 372 }}>
        <FramingEditor
          url={url}
          sizes={sizes}
          framing={framing}
          alt="Start image"
          onChange={setFraming}
        />
      </div>
    );
  }
  const url = URL.createObjectURL(image);
  const box = document.createElement('div');
  document.body.append(box);
  root = createRoot(box);
  root.render(<Harness />);
  await expect.poll(() => box.querySelector('img')?.complete).toBe(true);
  await Promise.all([...box.querySelectorAll('img')].map((img) => img.decode()));
  return { framing: () => chosen };
}

/** Mean difference of what the frame shows and what the model is given, as the video shows it, of 255. */
async function difference(image: Blob, framing: Framing): Promise<number> {
  const box = document.querySelector('.framing-frame');
  if (!box) throw new Error('no frame');
  expect(box.getBoundingClientRect()).toMatchObject(video);
  const { base64 } = await page.elementLocator(box).screenshot({ base64: true });
  const seen = await decodeImage(await (await fetch(`data:image/png;base64,${base64}`)).blob());
  const given = frameImage(await decodeImage(image), framing, frame, video);
  const expected = new FrameScaler(frame, { width: seen.width, height: seen.height }).scale(given);
  return (
    expected.reduce((sum, value, i) => sum + Math.abs(value - (seen.data[i] ?? 0)), 0) /
    expected.length
  );
}

test('the frame shows what the model is given, however the image is moved, zoomed and padded', async () => {
  // A larger page would be scaled for the screenshot.
  await page.viewport(480, 480);
  const image = await picture(600, 400);
  const { framing } = await open(image);
  const editor = page.getByRole('application');
  const expectSame = async () => expect(await difference(image, framing())).toBeLessThan(1);

  expect(framing()).toEqual(centred);
  await expectSame();
  await editor.click();
  await userEvent.keyboard('{ArrowDown}{ArrowDown}{ArrowDown}{ArrowDown}');
  expect(framing().y).toBeLessThan(0.3);
  await expectSame();
  expect(await difference(image, centred)).toBeGreaterThan(5);
  await userEvent.keyboard('+++++');
  expect(framing().zoom).toBeCloseTo(1.5);
  const { x } = framing();
  const [sourcePosition, targetPosition] = [
    { x: 150, y: 80 },
    { x: 190, y: 80 },
  ];
  await userEvent.dragAndDrop(editor, editor, { sourcePosition, targetPosition });
  expect(framing().x).toBeLessThan(x);
  await expectSame();
  await page.getByRole('button', { name: 'Fit' }).click();
  await expectSame();
  await page.getByRole('radio', { name: 'Colour' }).click();
  await expectSame();
  expect(framing()).toEqual({ zoom: 0, x: 0.5, y: 0.5, background: '#000000' });
  await page.getByRole('button', { name: 'Fill' }).click();
  await expectSame();
});
