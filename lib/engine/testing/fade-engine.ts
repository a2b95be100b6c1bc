/** An engine with a second model family and with steps around it, for `engine.browser.test.ts`. */
import type { FrameStepMaker } from '../../pipeline/steps';
import { startEngine } from '../engine';
import { fadeFamily } from './fade-family';

/** Counts the frames and notes how bright they are, and what image the model was given. */
const counting: FrameStepMaker = ({ frames: expected, image }) => {
  const means: number[] = [];
  const mean = (data: Float32Array) =>
    data.reduce((sum, value) => sum + value + 1, 0) / data.length;
  const whole = mean(image.data);
  return {
    name: 'counting',
    apply(frame, index) {
      if (index !== means.length) throw new TypeError(`frame ${index} came after ${means.length}`);
      means.push(mean(frame.data) / whole);
      return frame;
    },
    finish: async () => ({
      frames: means.length,
      expected,
      image: Array.from(image.data),
      means: [0, 40, 64, 65, 80].map((index) => means[index] ?? Number.NaN),
    }),
  };
};

startEngine({
  families: { fade: fadeFamily },
  manifests: new URL('/lib/engine/testing/models/', self.location.origin),
  frameSteps: [counting],
});
