/** `npm run kernels`: compiles the conversion's kernels after a change in `lib/weights/convert/assembly/`. */
import { writeFile } from 'node:fs/promises';
import { compileKernels, kernelsFile } from './compile-kernels';

await writeFile(kernelsFile, await compileKernels());
