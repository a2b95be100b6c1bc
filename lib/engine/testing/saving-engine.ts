/**
 * An engine that saves each step that it can, tells the frames that it encodes, and loses its GPU when it is
 * told to, at once or in the next work of our own kernels; for `resume.browser.test.ts`.
 */
import './short-videos';
import { sha256 } from '../../contract';
import { modelFamilies } from '../../models';
import { startEngine } from '../engine';

const encoded = new BroadcastChannel('encoded');
let seen = Promise.resolve({ frames: 0, hash: '' });

/** Tells with each frame a fingerprint of all frames of the video so far, in order. */
globalThis.VideoFrame = class extends VideoFrame {
  constructor(...[image, init]: [AllowSharedBufferSource, VideoFrameBufferInit]) {
    super(image, init);
    if (!(image instanceof Uint8Array)) return;
    const bytes = image.slice();
    seen = seen.then(async (before) => {
      const { frames, hash } = init.timestamp === 0 ? { frames: 0, hash: '' } : before;
      const all = await new Blob([hash, bytes]).arrayBuffer();
      const now = { frames: frames + 1, hash: await sha256(all) };
      encoded.postMessage(now);
      return now;
    });
  }
} as typeof VideoFrame;

const request = GPUAdapter.prototype.requestDevice;
GPUAdapter.prototype.requestDevice = async function (...options) {
  const device = await request.apply(this, options);
  let losing = false;
  new BroadcastChannel('lose').onmessage = ({ data }) => {
    if (data === 'in a kernel') losing = true;
    else device.destroy();
  };
  const { queue } = device;
  const [write, submit] = [queue.writeBuffer.bind(queue), queue.submit.bind(queue)];
  let ours = false;
  queue.writeBuffer = (...args: Parameters<typeof write>) => {
    // The kernels' uniforms are written right before the kernels are submitted.
    ours = args[0].label === 'uniforms';
    return write(...args);
  };
  queue.submit = (commands) => {
    submit(commands);
    if (losing && ours) device.destroy();
    ours = false;
  };
  return device;
};

startEngine({ families: modelFamilies, checkpointSeconds: 0 });
