import type { ClaimAnswer, WorkerDeclaration } from '../lib/contract/v3';
import { ApiCaller } from './support/api-caller';
import { startCommand } from './support/command';
import { full } from './support/fixtures';
import { expect, test } from './support/serve-fixtures';

/** Starts the command with a browser profile of this test's own; the token is in the environment. */
async function start(token: string, ...args: readonly string[]) {
  const env = { KINORA_HOME: test.info().outputPath('home'), KINORA_WORKER_TOKEN: token };
  return startCommand('worker', args, test.info().outputPath('run'), env);
}

const tiny = ['--model', 'tiny', '--backend', 'wasm', '--name', 'Cellar'] as const;

/** Takes the next job as another worker would, and hands it back. @returns which attempt it would be */
async function nextAttempt(origin: string, token: string, id: string): Promise<number> {
  const declaration: WorkerDeclaration = {
    worker_id: crypto.randomUUID().replaceAll('-', ''),
    name: 'Another',
    model: 'tiny',
    precision: 'f32',
    backend: 'wasm',
    sizes: ['1280*720'],
    loras: true,
    max_duration: 10,
    knows: ['loop', 'last_image', 'upscale'],
    safety_checker: 'demonstration',
    prompt_optimizer: false,
  };
  const worker = new ApiCaller(origin, token);
  const body = JSON.stringify(declaration);
  const { job } = await worker.json<ClaimAnswer>('POST', '/api/worker/claim', body);
  expect(job?.id).toBe(id);
  const lease = JSON.stringify({ lease_token: job?.lease_token });
  await worker.json('POST', `/api/worker/jobs/${id}/release`, lease);
  return job?.attempt ?? 0;
}

test(
  'the worker makes a video, and gives the next job back after SIGTERM',
  full,
  async ({ caller, workerToken }) => {
    const { origin } = caller;
    const run = await start(workerToken, '--server', origin, ...tiny);
    const id = await caller.submit();
    expect(await caller.ended(id)).toMatchObject({ status: 'completed', error: '' });
    const short = id.slice(0, 8);
    await expect.poll(run.stdout).toMatch(new RegExp(`^job ${short} done after \\d`, 'm'));
    const said = run.stdout();
    expect(said).toMatch(/^connected: takes jobs of \S+/m);
    expect(said).toContain(`job ${short} taken, attempt 1: 1280×720, 5 s, 1 steps`);
    expect(said).toMatch(new RegExp(`^job ${short} step 1/1$`, 'm'));
    expect(said).toMatch(new RegExp(`^job ${short} sending `, 'm'));

    const held = await caller.submit({ num_inference_steps: 40, guidance_scale: 5 });
    await expect
      .poll(run.stdout, { intervals: [50] })
      .toContain(`job ${held.slice(0, 8)} step 1/40`);
    run.end('SIGTERM');
    expect(await run.code, run.stderr()).toBe(0);
    expect(run.stdout()).toMatch(new RegExp(`^job ${held.slice(0, 8)} handed back after `, 'm'));
    expect(await caller.result(held)).toMatchObject({ status: 'created', error: '', outputs: [] });
    expect(await nextAttempt(origin, workerToken, held)).toBe(1);
    expect(run.stdout() + run.stderr()).not.toContain(workerToken);
  },
);

test(
  'a token that the server refuses ends the worker with a sentence',
  full,
  async ({ caller }) => {
    const wrong = 'kn_aaaaaaaa_bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb';
    const run = await start(wrong, '--server', caller.origin, ...tiny);
    expect(await run.code, run.stdout()).toBe(1);
    const [sentence, remedy] = run.stderr().split('\n');
    expect(sentence).toBe('REQUEST_INVALID: The server does not take this token.');
    expect(remedy).toMatch(/^Use a worker token of this server/);
  },
);
