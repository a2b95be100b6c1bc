/**
 * `npm test`, `npm run test:rest` and `npm run test:all`: the tools that check a change, one after the other, and a
 * last line `N passed, N failed`. The tools decide what a test is and how it is repeated and reported; see
 * e2e/README.md.
 */
import { spawn } from 'node:child_process';
import { mkdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { ensureBrowser } from '../browser/find';
import { root } from '../paths';
import { binary, ensureBuild, nextBinary } from './build';
import { compileKernels } from './compile-kernels';
import { prepareAssets } from './prepare-assets';
import { installTestPackages } from './test-packages';
import {
  atLeastOneFailure,
  type Counts,
  countsFileVariable,
  playwrightCounts,
} from './test-summary';

/** `quick` leaves out the tests with the tag `full`, `rest` runs only those. */
type Level = 'quick' | 'rest' | 'all';

const stages: Readonly<Record<string, (level: Level) => Promise<Counts>>> = {
  types: async () => {
    // On a fresh clone the declarations that tsconfig.json lists do not exist yet.
    const generated = await run([nextBinary(), 'typegen']);
    return single(generated || (await run([binary('typescript', 'bin/tsc'), '--noEmit'])));
  },
  lint: async () => single(await run(['--import', 'tsx/esm', 'lib/cli/dev/lint.ts', 'check'])),
  build: async () => {
    await ensureBuild(console.log);
    return single(0);
  },
  node: (level) => vitest('node', level),
  browser: (level) => vitest('browser', level),
  e2e: playwright,
};

const results = path.join(root, 'test-results');
const counts = new Map<string, Counts>();
process.exitCode = await main(process.argv.slice(2));

async function main([level = 'quick', ...stageNames]: readonly string[]): Promise<number> {
  const unknown = stageNames.filter((name) => !Object.hasOwn(stages, name));
  if (unknown.length > 0 || !isLevel(level)) {
    console.error(`Usage: npm test -- [${Object.keys(stages).join('|')} …]`);
    return 1;
  }
  const startedAt = performance.now();
  await rm(results, { recursive: true, force: true });
  await mkdir(results, { recursive: true });
  process.env.KINORA_BROWSER = await ensureBrowser();
  await prepareAssets(root);
  await compileKernels();
  // Before the first test needs one, whose time limit is not for a download. Without them the others still run.
  await installTestPackages().catch((error: Error) => console.error(error.message));

  const inTurn = async (...names: readonly string[]) => {
    for (const name of names) {
      if (stageNames.length === 0 || stageNames.includes(name)) await stage(name, level);
    }
  };
  // Types come before the build, which rewrites the declarations that they read. The browser's tests leave a
  // part of two cores idle, so Node's run beside them. The whole pages do not: the threads of an emulated GPU
  // wait for each other, and take several times as long where something else has the cores.
  if (level !== 'rest') {
    // One core each.
    await Promise.all([inTurn('types'), inTurn('lint')]);
    await inTurn('build');
  }
  await Promise.all([inTurn('node'), inTurn('browser')]);
  await inTurn('e2e');

  const all = [...counts.values()];
  const passed = all.reduce((sum, stage) => sum + stage.passed, 0);
  const failed = all.reduce((sum, stage) => sum + stage.failed, 0);
  console.log(`Took ${seconds(startedAt)}.`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed > 0 || passed === 0 ? 1 : 0;
}

function isLevel(name: string): name is Level {
  return name === 'quick' || name === 'rest' || name === 'all';
}

/** Runs one stage; what it throws is printed and counts as its failure. */
async function stage(name: string, level: Level): Promise<void> {
  const startedAt = performance.now();
  console.log(`== ${name}`);
  const result = await stages[name]?.(level).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    return single(1);
  });
  if (!result) return;
  counts.set(name, result);
  console.log(
    `== ${name}: ${result.passed} passed, ${result.failed} failed in ${seconds(startedAt)}`,
  );
}

async function vitest(project: string, level: Level): Promise<Counts> {
  const file = path.join(results, `${project}.json`);
  const filter = { quick: ['--tags-filter=!full'], rest: ['--tags-filter=full'], all: [] }[level];
  const program = [binary('vitest', 'vitest.mjs'), 'run', '--project', project, '--retry=1'];
  const code = await run([...program, ...filter], { [countsFileVariable]: file });
  return atLeastOneFailure(code, JSON.parse(await readFile(file, 'utf8')));
}

async function playwright(level: Level): Promise<Counts> {
  const file = path.join(results, 'e2e.json');
  const filter = { quick: ['--grep-invert=@full'], rest: ['--grep=@full'], all: [] }[level];
  const program = [binary('playwright', 'cli.js'), 'test', '--retries=1', '--reporter=list,json'];
  const code = await run([...program, ...filter], { PLAYWRIGHT_JSON_OUTPUT_FILE: file });
  return atLeastOneFailure(code, playwrightCounts(JSON.parse(await readFile(file, 'utf8'))));
}

/** The counts of a stage that is one check by itself. */
function single(exitCode: number): Counts {
  return exitCode === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** Runs a Node program in the project's folder with its output shown. @returns its exit code */
function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<number> {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, VITE_CONFIG_NATIVE_IGNORE_WARNING: 'true', ...env },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const stop = () => child.kill();
  const onSignal = () => process.exit(130);
  process.once('exit', stop).once('SIGINT', onSignal).once('SIGTERM', onSignal);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      process.off('exit', stop).off('SIGINT', onSignal).off('SIGTERM', onSignal);
      resolve(code ?? 1);
    });
  });
}

function seconds(since: number): string {
  return `${((performance.now() - since) / 1000).toFixed(0)} s`;
}
