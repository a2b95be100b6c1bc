/** An engine with a second model family, installed as after a download, and with a step that sees every frame. */
import { modelFamilies } from '../../models';
import { twoExpertsFamily } from '../../models/testing/two-experts/family';
import {
  installTwoExperts,
  twoExpertsFiles,
  twoExpertsManifest,
} from '../../models/testing/two-experts/files';
import type { FrameStepMaker } from '../../pipeline/steps';
import { httpFolder } from '../../weights';
import { openModelStore } from '../../weights/store';
import { startEngine } from '../engine';

/** Counts the frames, and notes what image the model was given. */
const counting: FrameStepMaker = ({ frames: expected, image }) => {
  let frames = 0;
  return {
    name: 'counting',
    async apply(frame, index) {
      if (index !== frames) throw new TypeError(`frame ${index} came after ${frames}`);
      frames += 1;
      return frame;
    },
    finish: async () => ({ frames, expected, image: Array.from(image.data) }),
  };
};

const { id } = twoExpertsManifest;
const folder = (await openModelStore()).folder(id);
if (!(await folder.readText('model.json'))) {
  const golden = new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/model/', self.location.origin);
  await installTwoExperts(folder, await twoExpertsFiles(httpFolder(golden)));
}
startEngine({ families: { ...modelFamilies, [id]: twoExpertsFamily }, frameSteps: [counting] });
postMessage('ready');
