/**
 * `npm run prepare:assets`. Commands preload it (`node --import`): it ends before their own modules are
 * loaded, which import the kernels.
 */
import { isMainThread } from 'node:worker_threads';
import { root } from '../paths';
import { compileKernels } from './compile-kernels';
import { prepareAssets } from './prepare-assets';

// The threads of a command, such as those of ONNX Runtime, preload it as well.
if (isMainThread) {
  const [copied, compiled] = [await prepareAssets(root), await compileKernels()];
  if (compiled) process.stdout.write('Compiled the kernels of the conversion.\n');
  if (copied.length > 0) process.stdout.write(`Prepared ${copied.length} public files.\n`);
}
