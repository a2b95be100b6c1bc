import { type Dispatch, useMemo } from 'react';
import {
  type ComponentId,
  KinoraError,
  type LibraryApi,
  type LibraryEntry,
  type LocalFile,
  type ModelEntry,
  type ModelSource,
  type Precision,
  toKinoraError,
} from '../../lib/contract';
import { getLibrary } from '../library';
import { accept, withTerms } from '../shared/terms-store';
import { t } from '../texts';
import '../texts/en/models';
import { adaptersOf } from './model-view';
import {
  addEach,
  type DownloadScope,
  type PageAction,
  type Removal,
  type Said,
  subjects,
} from './page-state';

/** Everything that can be done on the models page. */
export interface LibraryActions {
  /** An absent value keeps the earlier choice. */
  openSheet: (entry: ModelEntry, scope?: Partial<DownloadScope>) => void;
  /** @param accepts whether the person accepts the terms of use with it */
  download: (id: string, scope: DownloadScope, accepts?: boolean) => void;
  importFiles: (entry: ModelEntry, precision: Precision, files: readonly LocalFile[]) => void;
  pause: (id: string, component?: ComponentId) => void;
  resume: (entry: LibraryEntry, component?: ComponentId) => void;
  cancel: (id: string, component?: ComponentId) => void;
  verify: (id: string) => void;
  askRemoval: (removal: Removal) => void;
  remove: (removal: Removal) => void;
  addModel: (source: { address: string } | { files: readonly LocalFile[] }) => void;
  /** Adds a language model to the list; a local file is stored at once. */
  addTool: (source: ModelSource) => void;
  addLora: (source: { address: string } | { files: readonly File[] }) => void;
  /** Ends the download of a LoRA; nothing of it stays. */
  cancelLora: (name: string) => void;
  setHub: (base: string) => void;
  /** Keeps a token for the hub in this browser; null removes it. */
  setHubToken: (token: string | null) => void;
  /** Asks the browser to keep what is stored. To be called in a click handler. */
  persist: () => void;
}

/** Turns clicks into calls of the library, and what comes of them into the page's state. */
export function useLibraryActions(change: Dispatch<PageAction>): LibraryActions {
  return useMemo(() => createActions(change), [change]);
}

function createActions(change: Dispatch<PageAction>): LibraryActions {
  /** Runs one call; `said` tells what came of it. */
  function run<T>(
    subject: string,
    what: string,
    work: (api: LibraryApi) => Promise<T>,
    said?: (value: T) => Said,
  ): Promise<T | undefined> {
    change({ type: 'begun', subject, what });
    return withTerms(() => getLibrary().call(work)).then(
      (value) => {
        const sentence = said?.(value);
        change({ type: 'ended', subject, ...(sentence && { said: sentence }) });
        return value;
      },
      (thrown: unknown) => {
        const error = toKinoraError(thrown);
        // A cancel is no failure: the person asked for it.
        if (error.code === 'CANCELLED') change({ type: 'ended', subject });
        else change({ type: 'failed', subject, error: error.toRecord() });
        return undefined;
      },
    );
  }

  const openSheet: LibraryActions['openSheet'] = (entry, chosen) => {
    const { manifest } = entry;
    const precision = chosen?.precision ?? entry.precision ?? manifest.precision;
    const adapters = chosen?.adapters ?? adaptersOf(entry);
    const scope = { model: manifest.id, precision, adapters };
    change({ type: 'sheetOpened', ...scope });
    const sheet = { ...scope, plan: { status: 'asking' } } as const;
    getLibrary()
      .call((api) => Promise.race([api.planDownload(manifest.id, precision, adapters), tooLate()]))
      .then(
        (plan) => change({ type: 'planned', sheet, plan: { status: 'known', plan } }),
        (thrown: unknown) => {
          const error = toKinoraError(thrown).toRecord();
          change({ type: 'planned', sheet, plan: { status: 'failed', error } });
        },
      );
  };

  const fetchModel = (id: string, { precision, adapters }: DownloadScope) =>
    run(id, t('models.askingHub'), (api) => api.download(id, precision, adapters));

  const takeFiles = (id: string, precision: Precision, files: readonly LocalFile[]) =>
    run(id, t('models.readingFiles'), (api) => api.importFiles(id, precision, files));

  async function addModel(source: Parameters<LibraryActions['addModel']>[0]): Promise<void> {
    const entry = await run(
      subjects.addModel,
      'files' in source ? t('models.lookingFiles') : t('models.askingHub'),
      (api) => api.addModel(source),
      ({ manifest }) => t('models.added', { names: manifest.name }),
    );
    if (!entry) return;
    const { manifest } = entry;
    if ('files' in source) await takeFiles(manifest.id, manifest.precision, source.files);
    else openSheet(entry);
  }

  async function addTool(source: ModelSource): Promise<void> {
    const entry = await run(
      subjects.addTool,
      'files' in source ? t('models.lookingFile') : t('models.askingHub'),
      (api) => api.addTool(source),
      ({ manifest }) => t('models.added', { names: manifest.name }),
    );
    if (!entry || !('files' in source)) return;
    const { id, precision } = entry.manifest;
    await takeFiles(id, precision, source.files);
  }

  return {
    openSheet,
    download: (id, scope, accepts = false) => {
      keepStorage();
      change({ type: 'sheetClosed' });
      void (accepts ? accept() : Promise.resolve()).then(() => fetchModel(id, scope));
    },
    importFiles: ({ manifest: { id } }, precision, files) => {
      keepStorage();
      change({ type: 'sheetClosed' });
      void takeFiles(id, precision, files);
    },
    pause: (id, component) => void run(id, '', (api) => api.pause(id, component)),
    resume: (entry, component) => {
      keepStorage();
      const { id } = entry.manifest;
      void run(id, t('models.askingHub'), (api) =>
        component ? api.resume(id, component) : resumeAll(api, entry),
      );
    },
    cancel: (id, component) => void run(id, '', (api) => api.cancel(id, component)),
    verify: (id) =>
      void run(
        id,
        t('models.comparing'),
        (api) => api.verify(id),
        () => t('models.compared'),
      ),
    askRemoval: (removal) => change({ type: 'removalAsked', removal }),
    remove: ({ kind, id }) => {
      change({ type: 'removalAnswered' });
      const subject = kind === 'lora' ? subjects.addLora : id;
      void run(subject, t('models.deleting'), (api) => {
        if (kind === 'lora') return api.deleteLora(id);
        if (kind === 'download') return api.cancel(id);
        return kind === 'model' ? api.forgetModel(id) : api.deleteModel(id);
      });
    },
    addModel: (source) => {
      if ('files' in source) keepStorage();
      void addModel(source);
    },
    addTool: (source) => {
      if ('files' in source) keepStorage();
      void addTool(source);
    },
    addLora: (source) => {
      keepStorage();
      void run(
        subjects.addLora,
        t('models.readingLora'),
        (api) => {
          const files: { name: string; source: Parameters<LibraryApi['addLora']>[0] }[] =
            'files' in source
              ? source.files.map((file) => ({ name: file.name, source: { file } }))
              : [{ name: source.address, source }];
          return addEach(files, async (file) => (await api.addLora(file.source)).name);
        },
        (all) => all,
      );
    },
    cancelLora: (name) =>
      void getLibrary()
        .call((api) => api.deleteLora(name))
        .catch((thrown: unknown) => {
          const error = toKinoraError(thrown).toRecord();
          change({ type: 'failed', subject: subjects.addLora, error });
        }),
    setHub: (base) =>
      void run(
        subjects.hub,
        t('models.saving'),
        (api) => api.setHub(base),
        () => t('models.saved'),
      ),
    setHubToken: (token) =>
      void run(
        subjects.hub,
        t('models.saving'),
        (api) => api.setHubToken(token),
        () => (token === null ? t('models.tokenRemoved') : t('models.tokenKept')),
      ),
    persist: keepStorage,
  };
}

/** How long a person waits for the sizes, in milliseconds: a server may keep a request open for good. */
const planLimitMs = 15_000;

async function tooLate(): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, planLimitMs));
  throw new KinoraError('HUB_UNREACHABLE');
}

/** Goes on with everything: with parts, too, that had not begun when the page was closed. */
async function resumeAll(api: LibraryApi, entry: LibraryEntry): Promise<void> {
  const { manifest, precision } = entry;
  try {
    await api.download(manifest.id, precision ?? manifest.precision);
  } catch (thrown) {
    // It is still at work, waiting for the network or about to pause: that one goes on.
    if (toKinoraError(thrown).code !== 'MODEL_BUSY') throw thrown;
    await api.resume(manifest.id);
  }
}

/** First of all, while the click still counts as one: browsers ask or decide by it. */
function keepStorage(): void {
  (navigator as Partial<Navigator>).storage
    ?.persist()
    .then(() => getLibrary().refresh())
    // Without the promise everything works; the page shows that it was not given.
    .catch(() => {});
}
