/** The last step of `npm run build` and `npm run export`; with a folder, of the static export there. */
import path from 'node:path';
import { root } from '../paths';
import { finishBuild } from './app-files';

const [folder] = process.argv.slice(2);
const { files } = await finishBuild(root, folder && path.resolve(root, folder));
const bytes = files.filter(({ when }) => when === 'installed').reduce((sum, f) => sum + f.bytes, 0);
process.stdout.write(`Listed ${files.length} files of the app, ${(bytes / 1e6).toFixed(1)} MB.\n`);
