/**
 * An engine that saves each step that it can, tells the frames that it encodes, and loses its GPU when it is
 * told to, at once or in the next work of our own kernels; for `resume.browser.test.ts`.
 */
import './short-videos';
import { sha256 } from '../../contract';
import { modelFamilies } from '../../models';
import type { FrameStepMaker } from '../../pipeline/steps';
import { startEngine } from '../engine';

/** A fingerprint of all frames, in order. */
const hashing: FrameStepMaker = () => {
  let hash = '';
  let frames = 0;
  return {
    name: 'frames',
    async apply(frame) {
      const bytes = await new Blob([hash, frame.data as Float32Array<ArrayBuffer>]).arrayBuffer();
      hash = await sha256(bytes);
      frames += 1;
      return frame;
    },
    finish: async () => ({ frames, hash }),
  };
};

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

startEngine({ families: modelFamilies, frameSteps: [hashing], checkpointSeconds: 0 });
