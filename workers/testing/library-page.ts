import { proxy, wrap } from 'comlink';
import { installErrorTransfer } from '../../lib/contract/error-transfer';
import type { LibraryApi, LibrarySnapshot } from '../../lib/contract/library';
import { acceptTerms, openLora } from '../../lib/library';

declare global {
  /** The library worker of a test's page, and what it has told. */
  var testLibrary: {
    readonly api: LibraryApi;
    readonly snapshots: readonly LibrarySnapshot[];
    readonly openLora: typeof openLora;
  };
}

// Runs in the browser: the page of library-worker.test.ts loads it as a module.
installErrorTransfer();
const worker = new Worker(new URL('../library.ts', import.meta.url), { type: 'module' });
const remote = wrap<LibraryApi>(worker);
const snapshots: LibrarySnapshot[] = [];
remote
  .subscribe(proxy((snapshot: LibrarySnapshot) => void snapshots.push(snapshot)))
  .catch((error: unknown) => console.error(error));
await acceptTerms();
globalThis.testLibrary = { api: remote as unknown as LibraryApi, snapshots, openLora };
