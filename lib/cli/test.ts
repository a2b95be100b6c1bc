/**
 * `npm test`: everything that a change must pass. `npm test -- node lint` runs only what is named.
 * The last line is `N passed, N failed`. A file that failed is run once more at the end, by itself: what
 * passes then counts as passed, and is named with its first failure.
 */
import { mkdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { ensureBrowser } from './browser/find';
import { prepareAssets } from './browser/prepare-assets';
import { binary, ensureBuild, nextBinary } from './browser/server';
import { root } from './browser/stamp';
import { type Failure, playwrightFailures, vitestFailures } from './failures';
import { exitCode, signalTree, startChild } from './process';
import { filesToRepeat, type Run, repeated } from './repeat';
import { type Tally, tallyCommand, tallyPlaywright, tallyVitest, total } from './tally';
import { unhandledFileVariable } from './unhandled-reporter';

const stages = ['types', 'lint', 'node', 'build', 'browser', 'commands', 'e2e'] as const;
type Stage = (typeof stages)[number];

const resultsFolder = path.join(root, 'test-results');
const vitest = binary('vitest', 'vitest.mjs');
const startedAt = performance.now();
const results = new Map<Stage, Tally>();
const failures: Failure[] = [];
/** What passed only when it was run again: a race, or a machine that stood still. */
const flaky: Failure[] = [];
const repeats: (() => Promise<void>)[] = [];

const work: Readonly<Record<Stage, () => Promise<Tally>>> = {
  types,
  lint,
  node: () => testFiles('node', (files) => vitestProject('node', files)),
  build: buildApp,
  browser: () => testFiles('browser', (files) => vitestProject('browser', files)),
  commands: () => testFiles('commands', (files) => endToEnd('commands', files)),
  e2e: () => testFiles('e2e', (files) => endToEnd('pages', files)),
};

process.exitCode = await main();

async function main(): Promise<number> {
  const asked = process.argv.slice(2);
  const unknown = asked.filter((name) => !stages.some((stage) => stage === name));
  if (unknown.length > 0) {
    console.error(`Unknown: ${unknown.join(', ')}. Stages: ${stages.join(', ')}.`);
    return 1;
  }
  const isAsked = (stage: Stage) => asked.length === 0 || asked.includes(stage);
  const wanted = (stage: Stage) =>
    isAsked(stage) || (stage === 'build' && (isAsked('commands') || isAsked('e2e')));
  await prepare(wanted('browser') || wanted('commands') || wanted('e2e'));

  // Types come before the build, which rewrites the generated declarations they read. The browser's
  // tests leave a part of two cores idle, and so do Node's and the commands', so they run beside each
  // other; the pages as a person uses them have time limits of their own and get the machine to
  // themselves.
  const inTurn = async (...names: readonly Stage[]) => {
    for (const name of names) if (wanted(name)) await stage(name, work[name]);
  };
  await inTurn('types');
  await Promise.all([inTurn('build', 'lint', 'node', 'commands'), inTurn('browser')]);
  await inTurn('e2e');

  for (const repeat of repeats) await repeat();

  for (const { text } of flaky) console.log(`FLAKY, passed when it was run again: ${text}`);
  for (const { text } of failures) console.log(`FAILED ${text}`);
  for (const [name, { passed, failed }] of results) {
    console.log(`${name.padEnd(8)} ${passed} passed, ${failed} failed`);
  }
  const { passed, failed } = total([...results.values()]);
  if (flaky.length > 0) console.log(`Flaky: ${flaky.length}, named above.`);
  console.log(`Took ${seconds(startedAt)}.`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 || passed === 0 ? 1 : 0;
}

/** What several stages need: a browser, the public files, and the types that Next generates. */
async function prepare(withBrowser: boolean): Promise<void> {
  await rm(resultsFolder, { recursive: true, force: true });
  await mkdir(resultsFolder, { recursive: true });
  if (withBrowser) process.env.KINORA_BROWSER = await ensureBrowser();
  await prepareAssets(root);
}

async function types(): Promise<Tally> {
  // On a fresh clone the declarations that tsconfig.json lists do not exist yet.
  const generated = await run([nextBinary(), 'typegen'], { quiet: true });
  if (generated !== 0) return tallyCommand(generated);
  return tallyCommand(await run([binary('typescript', 'bin/tsc'), '--noEmit']));
}

async function lint(): Promise<Tally> {
  return tallyCommand(await run([binary('@biomejs/biome', 'bin/biome'), 'check']));
}

async function buildApp(): Promise<Tally> {
  await ensureBuild((line) => console.log(line));
  return tallyCommand(0);
}

/** A stage of many files; the few that failed are run again when everything else is over. */
async function testFiles(
  name: Stage,
  runFiles: (files: readonly string[]) => Promise<Run>,
): Promise<Tally> {
  const first = await runFiles([]);
  const files = filesToRepeat(first);
  if (files.length === 0) failures.push(...first.failures);
  else {
    repeats.push(async () => {
      console.log(`== ${name}, once more: ${files.join(' ')}`);
      const second = await runFiles(files).catch((error: unknown): Run => {
        console.error(error instanceof Error ? error.message : error);
        return { tally: tallyCommand(1), failures: [] };
      });
      const outcome = repeated(first, second);
      failures.push(...outcome.failures);
      flaky.push(...outcome.flaky);
      results.set(name, outcome.tally);
    });
  }
  return first.tally;
}

async function vitestProject(project: 'node' | 'browser', files: readonly string[]): Promise<Run> {
  const file = path.join(resultsFolder, `vitest-${project}.json`);
  const unhandled = path.join(resultsFolder, `vitest-${project}-unhandled.json`);
  const reporters = ['default', 'json', path.join(import.meta.dirname, 'unhandled-reporter.ts')];
  await Promise.all([file, unhandled].map((old) => rm(old, { force: true })));
  const options = [...reporters.map((name) => `--reporter=${name}`), `--outputFile.json=${file}`];
  const code = await run([vitest, 'run', '--project', project, ...options, ...files], {
    env: { [unhandledFileVariable]: unhandled },
  });
  const report = await readVitestReport(file, unhandled);
  return { tally: tallyVitest(code, report), failures: vitestFailures(report, root) };
}

async function endToEnd(project: 'commands' | 'pages', files: readonly string[]): Promise<Run> {
  const file = path.join(resultsFolder, `playwright-${project}.json`);
  await rm(file, { force: true });
  const playwright = [binary('playwright', 'cli.js'), 'test', `--project=${project}`];
  // Commands have the browser's tests beside them.
  const workers = project === 'commands' ? ['--workers=1'] : [];
  const code = await run([...playwright, '--reporter=list,json', ...workers, ...files], {
    env: { PLAYWRIGHT_JSON_OUTPUT_FILE: file },
  });
  const report = await readJson(file);
  return { tally: tallyPlaywright(code, report), failures: playwrightFailures(report) };
}

/** Runs one stage; whatever is thrown is printed and counts as its failure. */
async function stage(name: Stage, work: () => Promise<Tally>): Promise<void> {
  const stageStartedAt = performance.now();
  console.log(`== ${name}`);
  const tally = await work().catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    return tallyCommand(1);
  });
  results.set(name, tally);
  console.log(`== ${name}: ${tally.failed === 0 ? 'ok' : 'FAILED'} in ${seconds(stageStartedAt)}`);
}

/** Runs a Node program with its output shown; it ends with us, whatever ends us. */
async function run(
  args: readonly string[],
  options: { env?: Readonly<Record<string, string>>; quiet?: boolean } = {},
): Promise<number> {
  const child = startChild(args, {
    env: { VITE_CONFIG_NATIVE_IGNORE_WARNING: 'true', ...options.env },
  });
  const endWithUs = () => signalTree(child, 'SIGKILL');
  process.once('exit', endWithUs);
  const onSignal = () => process.exit(130);
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal);
  if (!options.quiet) child.stdout?.pipe(process.stdout, { end: false });
  child.stderr?.pipe(process.stderr, { end: false });
  try {
    return await exitCode(child);
  } finally {
    process.off('exit', endWithUs).off('SIGINT', onSignal).off('SIGTERM', onSignal);
  }
}

async function readVitestReport(file: string, unhandled: string): Promise<unknown> {
  const [report, errors] = await Promise.all([readJson(file), readJson(unhandled)]);
  return report && errors ? { ...report, errors } : undefined;
}

async function readJson(file: string): Promise<object | undefined> {
  return await readFile(file, 'utf8').then(JSON.parse, () => undefined);
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(1)} s`;
}
