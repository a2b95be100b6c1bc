import * as Comlink from 'comlink';
import { installErrorTransfer } from '../lib/contract/error-transfer';
import { createBackend } from '../lib/gpu';
import { modelFamilies } from '../lib/models';
import { type ParityLine, runParity } from '../lib/pipeline/parity';
import { classifierParity } from '../lib/safety/parity';
import { httpFolder } from '../lib/weights';

const families = { ...modelFamilies, classifier: classifierParity };

/** The parity check in a browser: the worker of `npm run parity -- DIR --backend webgpu`. */
const parity = {
  /**
   * Runs every stage that the folder has a golden for.
   *
   * @param base address of a folder laid out like the goldens, with a trailing slash
   */
  async run(
    base: string,
    options: { readonly tolerance?: number; readonly loraFiles: readonly string[] },
    onLine: (line: ParityLine) => void,
  ): Promise<void> {
    const backend = await createBackend('webgpu');
    try {
      const folder = httpFolder(new URL(base));
      await runParity(families, folder, backend, { ...options, onLine });
    } finally {
      await backend.dispose();
    }
  },
};

/** What the page sees of the worker. */
export type ParityApi = typeof parity;

installErrorTransfer();
Comlink.expose(parity);
