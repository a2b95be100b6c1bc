import path from 'node:path';
import { root } from '../paths';
import { importTestPackage } from './test-packages';

/** What is used of AssemblyScript's compiler. */
interface Compiler {
  main(
    args: readonly string[],
    host: {
      readonly stderr: { write(text: string): void };
      writeFile(name: string, contents: Uint8Array): void;
    },
  ): Promise<{ readonly error: Error | null }>;
}

const entry = 'lib/weights/convert/assembly/index.ts';
const options = [
  ...['--enable', 'simd', '--runtime', 'stub', '--noAssert'],
  ...['--optimizeLevel', '3', '--shrinkLevel', '0'],
  // Vectors are passed between the sources' own files only.
  ...['--disableWarning', '112'],
];

/** The compiled module: `npm run kernels` writes it, and a test compares. */
export const kernelsFile = path.join(root, 'lib/weights/convert/kernels-wasm.ts');

/**
 * Compiles the conversion's kernels from AssemblyScript to WebAssembly.
 *
 * @returns the text of {@link kernelsFile}
 * @throws Error with the compiler's output where a source has errors
 */
export async function compileKernels(): Promise<string> {
  const compiler = await importTestPackage<Compiler>('assemblyscript/dist/asc.js');
  let code = '';
  let output = '';
  const args = [entry, '--baseDir', root, '--outFile', 'kernels.wasm', ...options];
  const { error } = await compiler.main(args, {
    stderr: {
      write: (text) => {
        output += text;
      },
    },
    writeFile: (_, contents) => {
      code = Buffer.from(contents).toString('base64');
    },
  });
  if (error) throw new Error(output || error.message);
  return `/** The compiled kernels of \`assembly/\`, in base64: \`npm run kernels\` writes this file. */
export const wasm =
  '${code}';
`;
}
