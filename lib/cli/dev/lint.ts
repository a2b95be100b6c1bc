/** `npm run lint` and `npm run format`: Biome, one of the packages that `npm ci` leaves out. */
import { spawn } from 'node:child_process';
import { root } from '../paths';
import { writeImportRules } from './import-rules';
import { testPackageFile } from './test-packages';

await writeImportRules(root);
const biome = await testPackageFile('@biomejs/biome/bin/biome');
const child = spawn(process.execPath, [biome, ...process.argv.slice(2)], { stdio: 'inherit' });
child.once('exit', (code) => {
  process.exitCode = code ?? 1;
});
