/**
 * An engine that saves each step that it can, tells the frames that it encodes, and loses its GPU when it is
 * told to; for `resume.browser.test.ts`.
 */
import { sha256 } from '../../lib/contract';
import { modelFamilies } from '../../lib/models';
import type { FrameStepMaker } from '../../lib/pipeline/steps';
import { startEngine } from '../engine/engine';

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
  new BroadcastChannel('lose').onmessage = () => device.destroy();
  return device;
};

startEngine({ families: modelFamilies, frameSteps: [hashing], checkpointSeconds: 0 });
