import type { RunInput } from '../run-input';

/** The input of a run of the fake engine. */
export async function newInput(
  parameters: Partial<RunInput['parameters']> = {},
): Promise<RunInput> {
  return {
    image: await drawImage(),
    imageName: 'still.png',
    parameters: { prompt: 'a boat', num_inference_steps: 3, ...parameters },
    model: 'tiny',
    profile: 'standard',
    options: {},
    device: { backend: 'wasm' },
    loras: [],
  };
}

async function drawImage(): Promise<Blob> {
  const canvas = new OffscreenCanvas(640, 360);
  const context = canvas.getContext('2d');
  if (!context) throw new Error('no canvas');
  context.fillStyle = 'teal';
  context.fillRect(0, 0, 640, 360);
  return canvas.convertToBlob({ type: 'image/png' });
}
