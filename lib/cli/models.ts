import { stat } from 'node:fs/promises';
import {
  formatBytes,
  formatPercent,
  KinoraError,
  type LibraryEntry,
  type LibrarySnapshot,
  type LoraEntry,
  progressOf,
  type ToolManifest,
  termsText,
  toKinoraError,
} from '../contract';
import { isConverted } from '../pipeline/installation';
import { Command } from './command';
import { freeBytes } from './consent';
import { fetchEntry, isMissingChecker, requireNoFailure, watched } from './fetch-model';
import { type ModelsAction, modelsHelp, parseModelsOptions } from './models-options';
import { filesIn, fromUser, kinoraHome } from './paths';
import { type LibrarySession, openLibrarySession } from './session';

process.exitCode = await new Command().run(async (command) => {
  const options = parseModelsOptions(process.argv.slice(2));
  if (options === 'help') {
    process.stdout.write(modelsHelp);
    return;
  }
  if (options.action.command === 'terms') {
    process.stdout.write(`${termsText()}\n`);
    return;
  }
  const session = await openLibrarySession(command, kinoraHome(), options.hub);
  await perform(command, session, options.action);
  await session.snapshot();
});

async function perform(
  command: Command,
  session: LibrarySession,
  action: Exclude<ModelsAction, { command: 'terms' }>,
): Promise<void> {
  switch (action.command) {
    case 'list':
      return list(command, session);
    case 'add':
      if (action.kind === 'lora') return addLora(command, session, action);
      return addModel(command, session, action);
    case 'download': {
      const entry = await session.entry(action.id);
      await fetchEntry(command, session, entry, action);
      return command.say(`${entry.manifest.name} is ready: ${commandFor(entry)}`);
    }
    case 'verify':
      return verify(command, session, action.id);
    case 'decoders':
      return decoders(command, session, action);
    case 'delete':
      return remove(command, session, action.id);
  }
}

async function list(command: Command, session: LibrarySession): Promise<void> {
  const { home } = session;
  command.say(listText(await session.snapshot(), home, await freeBytes(home)));
}

async function decoders(
  command: Command,
  { page }: LibrarySession,
  { id, video, backend }: Extract<ModelsAction, { command: 'decoders' }>,
): Promise<void> {
  await page.page.locator('#files').setInputFiles(fromUser(video));
  const results = await command.interruptible(() => page.call('compareDecoders', id, backend));
  for (const { decoder, psnr, seconds } of results) {
    const quality = psnr === null ? '' : `, PSNR ${psnr.toFixed(2)} dB`;
    command.say(`${decoder.padEnd(6)} ${seconds.toFixed(1)} s${quality}`);
  }
}

type Adding = Extract<ModelsAction, { command: 'add' }>;

async function addModel(
  command: Command,
  session: LibrarySession,
  { source, revision, kind: what }: Adding,
): Promise<void> {
  const { page } = session;
  const kind = await kindOf(source);
  if (kind === 'address') {
    command.say(`Asking ${(await session.snapshot()).hub} …`);
    const { manifest } = await command.interruptible(() =>
      what === 'model'
        ? page.call('addModel', source, revision)
        : page.call('addTool', source, revision),
    );
    command.say(`Added ${manifest.name}: npm run models -- download ${manifest.id}`);
    return;
  }
  const files = await filesIn(fromUser(source));
  // The input keeps hold of the files; the page reads them in place.
  await page.page.locator('#files').setInputFiles(files.map(({ at }) => at));
  const paths = files.map(({ inside }) => inside);
  const entry = await command.interruptible(() =>
    page.call(what === 'model' ? 'addPickedModel' : 'addPickedTool', paths),
  );
  command.say(entry.manifest.description);
  await importPicked(command, session, entry, paths);
}

/** Converts the picked files; a model of which nothing came is not left in the list. */
async function importPicked(
  command: Command,
  session: LibrarySession,
  entry: LibraryEntry,
  paths: readonly string[],
): Promise<void> {
  const { page } = session;
  const { id, name, precision } = entry.manifest;
  const convert = () =>
    command.interruptible(
      () => page.call('importPicked', id, precision, paths),
      () => page.call('pause', id),
    );
  const now = await watched(command, session, entry, convert).catch(async (thrown: unknown) => {
    const { stored } = await session.entry(id);
    if (stored.length === 0) await page.call('forgetModel', id).catch(() => undefined);
    throw thrown;
  });
  command.say(
    now.ready
      ? `Added ${name}: ${commandFor(entry)}`
      : `Added what is there of ${name}: npm run models -- download ${id}`,
  );
  requireNoFailure(now);
}

async function addLora(
  command: Command,
  { page }: LibrarySession,
  { source }: Adding,
): Promise<void> {
  const kind = await kindOf(source);
  if (kind === 'folder') throw new KinoraError('LORA_INVALID', `${source} is a folder.`);
  if (kind === 'file') await page.page.locator('#loras').setInputFiles(fromUser(source));
  const { name, rank, base } = await command.interruptible(() =>
    page.call('addLora', kind === 'file' ? null : source),
  );
  command.say(`Added ${name} (rank ${rank}, ${base}): --lora ${name}:1`);
}

async function verify(command: Command, session: LibrarySession, id: string): Promise<void> {
  const before = await session.entry(id);
  const { name } = before.manifest;
  if (before.stored.length === 0) {
    throw new KinoraError('MODEL_NOT_INSTALLED', `Nothing is stored of ${name}.`, {
      remedy: `Run \`npm run models -- download ${id}\`.`,
    });
  }
  const verifying = () => command.interruptible(() => session.page.call('verify', id));
  requireNoFailure(await watched(command, session, before, verifying));
  command.say(`Every stored byte of ${name} is as it was written.`);
}

async function remove(command: Command, session: LibrarySession, id: string): Promise<void> {
  const { page } = session;
  const { loras } = await session.snapshot();
  if (loras.some(({ name }) => name === id)) {
    await page.call('deleteLora', id);
    command.say(`Deleted ${id}.`);
    return;
  }
  const { manifest, origin } = await session.entry(id);
  if (origin === 'added') {
    await page.call('forgetModel', id);
    command.say(`Deleted ${manifest.name} and took it off the list.`);
    return;
  }
  await page.call('deleteModel', id);
  command.say(`Deleted what was stored of ${manifest.name}.`);
}

/** How to use what is ready. */
function commandFor({ manifest, parts }: LibraryEntry): string {
  const isTool = parts.some(({ component }) => component === 'language_model');
  return isTool
    ? 'npm run generate -- --optimize-prompt'
    : `npm run generate -- --model ${manifest.id}`;
}

/** A name of a file on this machine means that file; everything else is an address. */
async function kindOf(source: string): Promise<'file' | 'folder' | 'address'> {
  const result = await stat(fromUser(source)).catch((thrown) => toKinoraError(thrown));
  if (result instanceof KinoraError) return 'address';
  return result.isDirectory() ? 'folder' : 'file';
}

/**
 * Models, LoRAs and free space, as lines.
 *
 * @param freeBytes free space on the disk of `home`; what the browser reports lags behind
 */
function listText(
  { hub, models: all, tools, loras, bytesStored }: LibrarySnapshot,
  home: string,
  freeBytes: number,
): string {
  const models = all.filter(({ hidden }) => !hidden);
  const idWidth = Math.max(...[...models, ...tools].map(({ manifest }) => manifest.id.length));
  const nameWidth = Math.max(0, ...loras.map(({ name }) => name.length));
  return [
    ...models.map((entry) => `${entry.manifest.id.padEnd(idWidth)}  ${stateOf(entry)}`),
    '',
    'Language models, for the prompt optimiser',
    ...tools.map((entry) => `${entry.manifest.id.padEnd(idWidth)}  ${stateOf(entry)}`),
    ...(loras.length > 0 ? ['', 'LoRAs'] : []),
    ...loras.map((lora) => `${lora.name.padEnd(nameWidth)}  ${loraFacts(lora)}`),
    '',
    `folder    ${home}`,
    `hub       ${hub}`,
    `storage   ${formatBytes(bytesStored)} in use, ${formatBytes(freeBytes)} free`,
  ].join('\n');
}

function bytesOf({ parts, shared = [] }: LibraryEntry): number {
  const own = parts.filter(({ component }) => !shared.includes(component));
  return own.reduce((sum, { bytesStored }) => sum + bytesStored, 0);
}

function stateOf(entry: LibraryEntry): string {
  const { manifest, origin, ready, parts, shared = [] } = entry;
  const checker = parts.some(isMissingChecker) ? ['quick safety check only'] : [];
  if (origin === 'bundled') return ['ready', 'comes with Kinora', ...checker].join(', ');
  const kept = `${formatBytes(bytesOf(entry))} on disk`;
  const converted = parts.some(({ component }) => isConverted(component));
  const precision = converted ? entry.precision : null;
  if (ready) return ['ready', precision, kept, ...checker].filter(Boolean).join(', ');
  const { bytesDone, bytesTotal } = progressOf(
    parts.filter(({ component }) => !shared.includes(component)),
  );
  if (bytesDone === 0) return ['not downloaded', ...sizeOf(manifest)].join(', ');
  // Absent parts are not in the sum.
  const isPart = bytesTotal !== null && bytesDone < bytesTotal;
  const share = isPart ? ` (${formatPercent(bytesDone / bytesTotal)})` : '';
  return `incomplete, ${formatBytes(bytesDone)}${share} fetched`;
}

/** The bytes of a listed language model, where they are known. */
function sizeOf({ sources }: ToolManifest): string[] {
  const [first, ...others] = sources.flatMap(({ files }) => files);
  return first?.bytes && others.length === 0 ? [formatBytes(first.bytes)] : [];
}

function loraFacts({ bytes, rank, base, noise, triggerWords }: LoraEntry): string {
  const words = triggerWords.length > 0 ? [`words: ${triggerWords.join(', ')}`] : [];
  const half = noise ? [`${noise} noise`] : [];
  return [formatBytes(bytes), `rank ${rank}`, base, ...half, ...words].join(', ');
}
