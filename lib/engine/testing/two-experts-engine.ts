/** An engine with a second model family, installed as after a download, which tells what image its model is given. */
import { modelFamilies } from '../../models';
import { twoExpertsFamily } from '../../models/testing/two-experts/family';
import {
  installTwoExperts,
  twoExpertsFiles,
  twoExpertsManifest,
} from '../../models/testing/two-experts/files';
import type { VideoModel } from '../../pipeline/model';
import { httpFolder } from '../../weights';
import { openModelStore } from '../../weights/store';
import { startEngine } from '../engine';

const given = new BroadcastChannel('given');

function telling(model: VideoModel): VideoModel {
  const { encodeImages, withLoras } = model;
  return Object.assign(model, {
    encodeImages: (...args: Parameters<typeof encodeImages>) => {
      given.postMessage(args[1][0]?.image.data);
      return encodeImages.apply(model, args);
    },
    withLoras: async (...args: Parameters<typeof withLoras>) =>
      telling(await withLoras.apply(model, args)),
  });
}

const { id } = twoExpertsManifest;
const folder = (await openModelStore()).folder(id);
if (!(await folder.readText('model.json'))) {
  const golden = new URL('/lib/models/wan/goldens/tiny-wan22-ti2v/model/', self.location.origin);
  await installTwoExperts(folder, await twoExpertsFiles(httpFolder(golden)));
}
const family: typeof twoExpertsFamily = {
  ...twoExpertsFamily,
  openInstalled: async (...args) => telling(await twoExpertsFamily.openInstalled(...args)),
};
startEngine({ families: { ...modelFamilies, [id]: family } });
postMessage('ready');
