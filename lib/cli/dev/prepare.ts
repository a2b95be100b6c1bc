/** `npm run prepare:assets`. Commands preload it with `node --import`. */
import { isMainThread } from 'node:worker_threads';
import { root } from '../paths';
import { prepareAssets } from './prepare-assets';

// The threads of a command, such as those of ONNX Runtime, preload it as well.
if (isMainThread) {
  const copied = await prepareAssets(root);
  if (copied.length > 0) process.stdout.write(`Prepared ${copied.length} public files.\n`);
}
